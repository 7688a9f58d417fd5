import pytest

from localidades_api.names.areas import AreaBook, match_municipality, match_state

ESTADOS = (
    "Aguascalientes", "Baja California", "Baja California Sur", "Campeche", "Coahuila de Zaragoza", "Colima", "Chiapas",
    "Chihuahua", "Ciudad de México", "Durango", "Guanajuato", "Guerrero", "Hidalgo", "Jalisco", "México",
    "Michoacán de Ocampo", "Morelos", "Nayarit", "Nuevo León", "Oaxaca", "Puebla", "Querétaro", "Quintana Roo",
    "San Luis Potosí", "Sinaloa", "Sonora", "Tabasco", "Tamaulipas", "Tlaxcala", "Veracruz de Ignacio de la Llave",
    "Yucatán", "Zacatecas",
)  # fmt: skip
BOOK = AreaBook(
    dict(enumerate(ESTADOS, 1)),
    {5007: "Cuatro Ciénegas", 5018: "Monclova", 10028: "San Juan del Río", 13046: "San Felipe Orizatlán",
     14070: "El Salto", 22016: "San Juan del Río", 29003: "Atlangatepec"},
    {29003: "Atlanga Tepec"},
)  # fmt: skip
ISO = "AGU BCN BCS CAM COA COL CHP CHH CMX DUR GUA GRO HID JAL MEX MIC MOR NAY NLE OAX PUE QUE ROO SLP SIN SON TAB TAM"
CURP = "AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS"


@pytest.mark.parametrize("codes", [f"{ISO} TLA VER YUC ZAC", CURP], ids=["ISO and SAT", "CURP"])
def test_estado_is_found_by_its_code(codes: str) -> None:
    for id_, code in enumerate(codes.split(), 1):
        for text in (code, code.lower(), f"MX-{code}"):
            assert BOOK.find_state(text) == id_
        result = match_state(BOOK, code)
        assert (result.id, result.outcome) == (id_, "exact")
    assert BOOK.find_state("DIF") == 9
    assert BOOK.find_state("NE") is None  # of the CURP: born abroad


@pytest.mark.parametrize(
    ("text", "estado_id", "id_"),
    [
        ("Cuatrociénegas", 5, 5007),
        ("CUATROCIENEGAS", None, 5007),
        ("Cuatro Cienegas", 5, 5007),
        ("Cuatrocienagas", 5, 5007),
        ("sanjuandelrio", 22, 22016),
        ("Sanfelipe Orizatlan", 13, 13046),
        ("San Felipe Oriza Tlan", 13, 13046),
        ("Elsalto", 14, 14070),
        ("Atlanga tepec", 29, 29003),
    ],
)
def test_municipio_is_found_with_its_spaces_left_out_or_added(text: str, estado_id: int | None, id_: int) -> None:
    assert [area.id for area in BOOK.find_municipios(text, estado_id)] == [id_]


def test_municipio_in_one_word_is_not_quite_the_name() -> None:
    assert [area.likeness for area in BOOK.find_municipios("Cuatrociénegas", 5)] == [99.0]
    assert match_municipality(BOOK, "Cuatrociénegas", "Coahuila").best is not None
