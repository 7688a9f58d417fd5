"""Reads a service with the client that was generated from its document, and prints what it found."""

import json
import sys
from typing import assert_type

from localidades_api_client import Client
from localidades_api_client.api.downloads import download_localities
from localidades_api_client.api.localities import get_locality, list_localities, suggest_localities
from localidades_api_client.api.matching import match_localities
from localidades_api_client.api.releases import get_index, list_changes
from localidades_api_client.models import (
    CatalogueIndex,
    Format,
    InvalidPageProblem,
    Language,
    LocalityChangePage,
    LocalityDetail,
    LocalityPage,
    MatchLocalitiesBody,
    MatchResults,
    SuggestionResults,
)

with Client(base_url=sys.argv[1], raise_on_unexpected_status=True) as client:
    page = list_localities.sync(client=client)
    assert isinstance(page, LocalityPage)
    first = page.results[0]
    chosen = list_localities.sync(client=client, municipio_id=str(first.municipio_id))
    assert isinstance(chosen, LocalityPage)
    detail = get_locality.sync(first.id, client=client)
    assert isinstance(detail, LocalityDetail)
    found = suggest_localities.sync(client=client, q="aguas")
    assert isinstance(found, SuggestionResults)
    suggestion = found.results[0]
    problem = list_localities.sync(client=client, page=page.total_pages + 1)
    assert isinstance(problem, InvalidPageProblem)
    file = download_localities.sync(client=client, municipio_id=str(first.municipio_id))
    assert isinstance(file, str)
    changes = list_changes.sync("2020-01", client=client, since="2020-01")
    assert isinstance(changes, LocalityChangePage)
    rows = MatchLocalitiesBody.from_dict({"rows": [{"nombre": first.nombre, "estado": "Aguascalientes"}]})
    matched = match_localities.sync(client=client, body=rows)
    assert isinstance(matched, MatchResults)
    index = get_index.sync(client=client, lang=Language.ES, format_=Format.JSON)
    assert isinstance(index, CatalogueIndex)

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
    "changes": changes.quantity,
    "matched": matched.results[0].cvegeo,
    "localidades": index.totals.localidades,
    "lines": len(file.splitlines()),
}
sys.stdout.write(json.dumps(answers))
