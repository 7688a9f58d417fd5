"""Queries that are read before routing: what is not plain is left to it."""

import pytest

from localidades_api.http.query import parse_parameters


@pytest.mark.parametrize("query", [b"q=a%00", b"%00=a", b"q=a&q=b", b"q=%ff", "q=á".encode()])
def test_query_that_is_in_doubt_is_not_taken_apart(query: bytes) -> None:
    assert parse_parameters(query) is None


def test_plain_query_is_decoded() -> None:
    assert parse_parameters(b"q=San+Jos%C3%A9&limit=3") == {"q": "San José", "limit": "3"}
