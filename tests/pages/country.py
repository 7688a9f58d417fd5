"""Two releases of a country of 700 places, and every kind of page that a service shows of them."""

from dataclasses import replace

from tests.support.catalogue import TRAPS, Place
from tests.support.pages import INDEX, list_other_pages

LIST = f"{INDEX}localidades/?format=api"
KINDS = {
    "index": INDEX,
    "list": f"{LIST}&page=7",
    "filtered": f"{LIST}&page_size=10&municipio_id=14001&search=pe%C3%B1on",
    "empty": f"{LIST}&search=zzzz",
    "larger": f"{LIST}&page_size=1000",
    "municipios": f"{INDEX}municipios/?format=api&page_size=3&page=2",
    "estados": f"{INDEX}estados/?format=api",
    "localidad": f"{INDEX}localidades/140010070/?format=api",
    "localidad-long": f"{INDEX}localidades/140010002/?format=api",
    "localidad-nowhere": f"{INDEX}localidades/10020001/?format=api",
    "municipio": f"{INDEX}municipios/14001/?format=api",
    "estado": f"{INDEX}estados/14/?format=api",
    "suggest": f"{INDEX}localidades/suggest/?format=api&q=penon",
    "nearest": f"{INDEX}localidades/nearest/?format=api&lat=20.7&lon=-103.3",
    "releases": f"{INDEX}releases/?format=api",
    "match": "/match?format=api",
    "changes": f"{INDEX}releases/2021-01/changes/?format=api&since=2020-01&page_size=10",
    "problems": "/problems?format=api",
    "help": "/help",
    "guide-add-keys": "/help/add-keys",
    "guide-data": "/help/data",
    "guide-openrefine": "/help/openrefine",
    "ogc": "/ogc/?format=api",
    "preview": f"{INDEX}reconcile/preview/?id=140010070",
    "preview-410": f"{INDEX}reconcile/preview/?id=310030005",
    "error-404": f"{INDEX}nothing/?format=api",
    "error-404-guide": "/help/nothing",
    "error-404-page": f"{LIST}&page=999",
    "error-404-outlines": f"{INDEX}municipios/at/?format=api&lat=20.7&lon=-103.3",
    "error-404-key": f"{INDEX}localidades/14010001/?format=api",
    "error-410": f"{INDEX}localidades/310030005/?format=api",
    "error-410-municipio": f"{INDEX}municipios/31004/?format=api",
    "error-422": f"{LIST}&page=x&ambito=Z&nothing=1",
}
KINDS |= list_other_pages(KINDS.values())

_STATES = (("02", "Baja California", 32.5, -115.5), ("14", "Jalisco", 20.7, -103.3), ("31", "Yucatán", 20.9, -89.6))
# The only place of its municipio, until it moves to another.
_MOVED = Place("310040001", "Villa Mudada", nom_ent="Yucatán", nom_mun="Tepatitlán 4", latitud="20.5", longitud="-89.3")
_LONG = "San Francisco Telixtlahuaca de los Peñascos (Fraccionamiento Residencial Las Águilas)"


def places() -> list[Place]:
    """Return 700 places in three estados: the traps, homonyms, and a name as long as INEGI's longest."""
    country = [*TRAPS, _MOVED]
    for cve_ent, estado, north, west in _STATES:
        for number in range(228):
            municipio, place = divmod(number, 76)
            name = "Guadalajara" if number == 0 else _LONG if number == 1 else f"El Peñón {number}"
            country.append(
                Place(
                    f"{cve_ent}{municipio + 1:03d}{place + 1:04d}", name, nom_ent=estado,
                    nom_mun=f"Tepatitlán {municipio + 1}", ambito="RU"[number % 7 == 0],
                    latitud=f"{north - number % 19 / 10:.6f}",
                    longitud=f"{west + number % 23 / 10:.6f}", poblacion=str(number * 7 + 1),
                )
            )  # fmt: skip
    return sorted(country, key=lambda place: place.cvegeo)


def a_year_later() -> list[Place]:
    """Return the same with places removed, renamed and added, and without a municipio."""
    kept = [place for place in places() if not "310030005" <= place.cvegeo <= "310030064" and place != _MOVED]
    renamed = {place: replace(place, nombre=f"Nuevo {place.nombre}") for place in kept if place.cvegeo[-4:] == "0070"}
    like = next(place for place in kept if place.cvegeo == "310010005")
    added = [
        replace(like, cvegeo=f"31001{number:04d}", nombre=f"Nacido {number}", nom_mun="Tepatitlán 1")
        for number in range(900, 929)
    ]
    added.append(replace(_MOVED, cvegeo="310010929", nom_mun="Tepatitlán 1"))
    return sorted([*(renamed.get(place, place) for place in kept), *added], key=lambda place: place.cvegeo)
