"""Lists of localities as JSON, from the texts that Postgres writes."""

from collections.abc import Iterable

from pydantic_core import to_json

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO


def encode_envelope(quantity: int, total_pages: int, results: str) -> bytes:
    """Return the JSON of one page of a list; `results` is a JSON array without its brackets."""
    return f'{{"quantity":{quantity},"total_pages":{total_pages},"results":[{results}]}}'.encode()


def encode_localities(places: Iterable[tuple[int, str]]) -> str:
    """Return the localities with these keys and names as Postgres writes them (`database.queries.catalogue`)."""
    return ",".join(
        f'{{"id":{id_},"municipio_id":{id_ // KEYS_OF_A_MUNICIPIO},"clave":"{id_ % KEYS_OF_A_MUNICIPIO:04d}"'
        f',"nombre":{to_json(nombre).decode()}}}'
        for id_, nombre in places
    )
