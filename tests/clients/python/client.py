"""Reads a service with the client that was generated from its document, and prints what it found."""

import json
import sys
from typing import assert_type

from localidades_api_client import Client
from localidades_api_client.api.census import download_localities, get_locality, list_localities, suggest_localities
from localidades_api_client.models import FoundSuggestion, InvalidPageProblem, LocalityDetail, PageLocality

with Client(base_url=sys.argv[1], raise_on_unexpected_status=True) as client:
    page = list_localities.sync(client=client)
    assert isinstance(page, PageLocality)
    first = page.results[0]
    chosen = list_localities.sync(client=client, municipio_id=first.municipio_id)
    assert isinstance(chosen, PageLocality)
    detail = get_locality.sync(first.id, client=client)
    assert isinstance(detail, LocalityDetail)
    found = suggest_localities.sync(client=client, q="aguas")
    assert isinstance(found, FoundSuggestion)
    suggestion = found.results[0]
    problem = list_localities.sync(client=client, page=page.total_pages + 1)
    assert isinstance(problem, InvalidPageProblem)
    file = download_localities.sync(client=client, municipio_id=first.municipio_id)
    assert isinstance(file, str)

# The type checker knows what these are: none of the types above is `Any`.
assert_type(first.nombre, str)
assert_type(detail.latitud, float | None)
assert_type(suggestion.label, str)
assert_type(problem.title, str)

answers = {
    "quantity": page.quantity,
    "first": first.nombre,
    "chosen": [locality.nombre for locality in chosen.results],
    "cvegeo": detail.cvegeo,
    "municipio": detail.municipio.nombre,
    "poblacion": detail.poblacion,
    "suggestion": suggestion.label,
    "match": suggestion.match.value,
    "problem": problem.title,
    "lines": len(file.splitlines()),
}
sys.stdout.write(json.dumps(answers))
