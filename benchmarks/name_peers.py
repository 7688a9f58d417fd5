"""Compares the index of names with the usual alternatives: Postgres trigrams, tantivy, rapidfuzz.

    DATABASE_URL=postgresql://… python -m benchmarks.name_peers 2018.zip --earlier 2012.zip --dirty dirty_names.tsv

sends all of them the same queries in one run. It prints how often the right place is first and among the first five,
and the processor or statement time of a query. The peers search the folded labels (name, municipio, estado). Trigrams
use a temporary table and the extension pg_trgm. A slow peer answers only every tenth query.
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from pathlib import Path

import asyncpg
import tantivy
from rapidfuzz import process

from benchmarks.names import (
    Case,
    Outcome,
    build,
    dirty_rows,
    largest,
    line,
    mistyped,
    places_of,
    read_catalogue,
    typed_queries,
)
from localidades_api.catalogue.folding import fold
from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace

_QUERIES = Path(__file__).parent.parent / "tests" / "search" / "queries.tsv"
_SAMPLE = 300
_SEED = 13
_SLOW = 0.1  # seconds; a peer that takes longer for a query answers every tenth

Ask = Callable[[Case], Awaitable[Sequence[int]]]


def ours(index: NameIndex) -> Ask:
    """Query the index of names."""

    async def ask(case: Case) -> Sequence[int]:
        return [one.id for one in index.suggest(case.text, kinds=case.kinds)]

    return ask


async def trigrams(url: str, labels: Sequence[tuple[int, str]]) -> Ask:
    """Query Postgres for the labels with a part most similar to the text."""
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TEMPORARY TABLE labels (id integer, label text)")
    await connection.copy_records_to_table("labels", records=labels)
    await connection.execute("CREATE INDEX ON labels USING gist (label gist_trgm_ops (siglen=256)); ANALYZE labels")

    async def ask(case: Case) -> Sequence[int]:
        rows = await connection.fetch("SELECT id FROM labels ORDER BY $1 <<-> label LIMIT 5", fold(case.text))
        return [row["id"] for row in rows]

    return ask


def bare_tantivy(folder: Path, labels: Sequence[tuple[int, str]]) -> Ask:
    """Query tantivy, allowing one wrong letter in each word, in the order of BM25."""
    schema = (
        tantivy.SchemaBuilder()
        .add_text_field("label", tokenizer_name="whitespace")
        .add_unsigned_field("id", stored=True)
        .build()
    )
    index = tantivy.Index(schema, str(folder))
    writer = index.writer(heap_size=64_000_000, num_threads=1)
    for id_, label in labels:
        writer.add_document(tantivy.Document(label=label, id=id_))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    async def ask(case: Case) -> Sequence[int]:
        words = fold(case.text).split()
        parts = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "label", word)) for word in words]
        parts += [(tantivy.Occur.Should, tantivy.Query.fuzzy_term_query(schema, "label", word, 1)) for word in words]
        hits = searcher.search(tantivy.Query.boolean_query(parts), 5).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return ask


def bare_rapidfuzz(labels: Sequence[tuple[int, str]]) -> Ask:
    """Query rapidfuzz (WRatio) over every label."""
    texts = [label for _, label in labels]

    async def ask(case: Case) -> Sequence[int]:
        return [labels[place][0] for _, _, place in process.extract(fold(case.text), texts, limit=5)]

    return ask


async def measure(peer: str, ask: Ask, what: str, cases: Sequence[Case]) -> None:
    """Print a line of the table."""
    began = time.perf_counter()
    await ask(cases[0])
    asked = cases[::10] if time.perf_counter() - began > _SLOW else cases
    outcome = Outcome(f"{peer}: {what}", "")
    began = time.perf_counter()
    for case in asked:
        outcome.add(case.text, case.key, await ask(case))
    each = (time.perf_counter() - began) / len(asked) * 1000
    shares = f"first {outcome.first / outcome.count:.1%}, in five {outcome.five / outcome.count:.1%}, {each:.1f} ms"
    print(line(outcome.name, outcome.count, "", shares), flush=True)


def label_of(place: IndexedPlace) -> str:
    """Return the labels that the peers search."""
    return fold(f"{place.nombre}, {place.municipio}, {place.estado}")


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of the release to search")
    parser.add_argument("--earlier", type=Path, help="its file of an earlier release")
    parser.add_argument("--dirty", type=Path, help="a table of names as people typed them, with their keys")
    given = parser.parse_args()
    catalogue = read_catalogue(given.catalogue)
    earlier = read_catalogue(given.earlier) if given.earlier else None
    chance = random.Random(_SEED)  # noqa: S311  # not for secrets
    cases = {
        "queries as people type them": list(typed_queries(_QUERIES)),
        "largest places with their estado, one typo": list(islice(mistyped(largest(catalogue), chance), _SAMPLE)),
    }
    if given.dirty:
        dirty = [(row, key) for kind, row, key in dirty_rows(given.dirty) if kind == "diff"]
        cases["dirty names with municipio and estado"] = [
            Case(f"{row.nombre}, {row.municipio}, {row.estado}", key) for row, key in chance.sample(dirty, _SAMPLE)
        ]
    labels = [(place.id, label_of(place)) for place in places_of(catalogue, None)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bare").mkdir()
        peers = {
            "this": ours(build(Path(folder) / "names", catalogue, earlier)),
            "Postgres trigrams": await trigrams(os.environ["DATABASE_URL"], labels),
            "tantivy bare": bare_tantivy(Path(folder) / "bare", labels),
            "rapidfuzz bare": bare_rapidfuzz(labels),
        }
        for what, asked in cases.items():
            for peer, ask in peers.items():
                await measure(peer, ask, what, asked)


if __name__ == "__main__":
    asyncio.run(main())
