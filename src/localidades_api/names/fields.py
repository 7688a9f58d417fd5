"""The fields of a document, which build and search must agree on, and the beginnings of names."""

from collections.abc import Iterable

import tantivy

from localidades_api.names.naming import PlaceName
from localidades_api.names.vocabulary import ARTICLES

MAX_BEGINNING = 2  # letters of any word of a place; so short, they are too many words to be looked up one by one
MAX_START = 3  # letters of a name


def schema() -> tantivy.Schema:
    """Return the fields of a document.

    `name` has the canonical words of its names, `raw` the words of its names that are none of these, `text` the
    canonical words of its names and areas; `begin` and `start` have beginnings; `scope` has its areas, clave and
    ambito; `rank` is its row, and `position` its place in the list.
    """
    builder = tantivy.SchemaBuilder()
    for field in ("name", "raw", "text", "begin", "start", "scope"):
        builder.add_text_field(field, index_option="basic", tokenizer_name="whitespace")
    builder.add_unsigned_field("rank", fast=True)
    builder.add_unsigned_field("position", fast=True)
    return builder.build()


def starts(folded: str, names: Iterable[PlaceName]) -> set[str]:
    """Return the beginnings that a place is found under when a few letters are typed: with its article and without."""
    written = {folded, *(" ".join(words) for _, words, _ in names)}
    article, _, rest = folded.partition(" ")
    if rest and article in ARTICLES:
        written.add(rest)
    return {name[:length].strip().replace(" ", "_") for name in written for length in range(1, MAX_START + 1)}
