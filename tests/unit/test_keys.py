"""Official keys as numbers and texts."""

import pytest

from localidades_api.catalogue.keys import PlaceKind, format_key, kind_of_key, municipalities_of, state_of


@pytest.mark.parametrize("estado", [1, 9, 32])
def test_municipios_of_an_estado_have_its_key(estado: int) -> None:
    first, last = municipalities_of(estado)
    assert (format_key("municipio", first), format_key("municipio", last)) == (f"{estado:02}000", f"{estado:02}999")
    assert [state_of(key) for key in (first - 1, first, last, last + 1)] == [estado - 1, estado, estado, estado + 1]


@pytest.mark.parametrize(
    ("id_", "kind", "key"),
    [
        (1, "estado", "01"), (32, "estado", "32"), (999, "estado", "999"), (1000, "municipio", "01000"),
        (32058, "municipio", "32058"), (999_999, "municipio", "999999"), (1_000_000, "localidad", "001000000"),
        (320580044, "localidad", "320580044"),
    ],
)  # fmt: skip
def test_size_of_a_key_tells_its_kind(id_: int, kind: PlaceKind, key: str) -> None:
    assert (kind_of_key(id_), format_key(kind, id_)) == (kind, key)
