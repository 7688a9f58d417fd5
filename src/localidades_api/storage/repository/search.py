"""Suggestions: places by what a person types."""

from typing import Any, NamedTuple

from sqlalchemy import Row, text

from localidades_api.domain.filters import municipalities_of
from localidades_api.domain.schemas import Release
from localidades_api.storage.models import WORDS_OF_NAME
from localidades_api.storage.pool import Database
from localidades_api.storage.replica_check import requires_release
from localidades_api.storage.repository.conditions import (
    MAX_INDEXED_WORDS,
    WORDS_AS_READ,
    distinct_words,
    prefixes,
)
from localidades_api.storage.repository.places import PARENTS, PLACE

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_SHORT_WORD = 4  # letters; such a word with a wrong one shares no trigrams to speak of with the right one
_MAX_VARIED_WORD = 24  # letters; of longer words trigrams tell all
_MAX_MISTYPED = 6  # words, the longest, that are looked up for others like them
_MAX_MISTYPED_LETTERS = 3  # words of one letter: most names have a word that may be meant
_MAX_LIKE_WORDS = 20

# Names of these very words in another order come before those that have more (`more`).
# The second half is only run where the first does not fill the answer: Append stops at the outer LIMIT.
_SUGGESTIONS = """
    WITH found AS (
        (SELECT id, CASE WHEN folded = :folded THEN 0 ELSE 1 END AS rank, 0 AS more, prominence
           FROM localities
          WHERE release_id = :release_id AND folded >= :folded AND folded < :beyond {scope}
          ORDER BY rank, prominence
          LIMIT :limit)
        UNION ALL
        (SELECT id, 2, CASE WHEN length(folded) = length(:folded) THEN 0 ELSE 1 END AS more, prominence
           FROM localities
          WHERE release_id = :release_id AND {words} @@ CAST(CAST(:words AS text) AS tsquery) {others}
            AND NOT (folded >= :folded AND folded < :beyond) {scope}
          ORDER BY more, prominence
          LIMIT :limit)
        LIMIT :limit
    )
    SELECT {place}, found.rank
      FROM found
      JOIN localities AS l ON l.release_id = :release_id AND l.id = found.id
      {parents}
     ORDER BY found.rank, found.more, found.prominence
"""
_NEAR_MISSES = """
    WITH found AS (
        SELECT id, similarity(folded, :folded) AS likeness, prominence
          FROM localities
         WHERE release_id = :release_id AND {words} @@ CAST(CAST(:words AS text) AS tsquery) {scope}
           AND id <> ALL(:known)
         ORDER BY likeness DESC, prominence
         LIMIT :limit
    )
    SELECT {place}, 3 AS rank
      FROM found
      JOIN localities AS l ON l.release_id = :release_id AND l.id = found.id
      {parents}
     ORDER BY found.likeness DESC, found.prominence
"""
_LIKE = text(
    f"""
    SELECT typed.word AS typed, near.word
      FROM unnest(CAST(:long AS text[])) AS typed (word)
     CROSS JOIN LATERAL (SELECT word FROM words
                          WHERE word % typed.word OR word LIKE '%' || typed.word || '%'
                          ORDER BY similarity(word, typed.word) DESC, word
                          LIMIT {_MAX_LIKE_WORDS}) AS near
     UNION ALL
    SELECT typed.word, near.word
      FROM unnest(CAST(:typed AS text[]), CAST(:variants AS text[])) AS typed (word, variant)
      JOIN words AS near ON near.word = typed.variant
    """
)


class SearchArea(NamedTuple):
    """Where to look: an estado, a municipio, or everywhere."""

    estado_id: int | None = None
    municipio_id: int | None = None


class SearchRepository:
    """Finds places; a database that does not answer raises DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def suggest(self, release: Release, folded: str, scope: SearchArea, limit: int) -> list[Row[Any]]:
        """Return places whose name is, begins with or has these words, then such with words much like them.

        `folded` is what was typed, folded. Among equals the larger place comes first.
        """
        if not folded:
            return []
        parameters = {"release_id": release.id, "folded": folded, "limit": limit, **_bounds(scope)}
        words = distinct_words(folded)
        indexed = {"words": prefixes(words[:MAX_INDEXED_WORDS])}
        others = {"others": prefixes(rest)} if (rest := words[MAX_INDEXED_WORDS:]) else {}
        found = [
            *await self._database.fetch(
                _statement(_SUGGESTIONS, scope, others=bool(others)),
                {**parameters, "beyond": folded + "{", **indexed, **others},  # `{` comes after `z`
                replica_check=requires_release(release),
            )
        ]
        if len(found) < limit and (alike := await self._like(release, folded)):
            parameters |= {"limit": limit - len(found), "words": alike, "known": [place.id for place in found]}
            found += await self._database.fetch(
                _statement(_NEAR_MISSES, scope), parameters, replica_check=requires_release(release)
            )
        return found

    async def _like(self, release: Release, folded: str) -> str | None:
        """Write a tsquery for names with words much like these; None where no word is like any."""
        longest = sorted(set(folded.split()), key=lambda word: (len(word), word), reverse=True)[:_MAX_MISTYPED]
        typed = [word for index, word in enumerate(longest) if len(word) > 1 or index < _MAX_MISTYPED_LETTERS]
        variants = [(word, variant) for word in typed if len(word) <= _MAX_VARIED_WORD for variant in _vary(word)]
        rows = await self._database.fetch(
            _LIKE,
            {
                "long": [word for word in typed if len(word) > _MAX_SHORT_WORD],
                "typed": [word for word, _ in variants],
                "variants": [variant for _, variant in variants],
            },
            replica_check=requires_release(release),
        )
        alternatives = {word: [f"'{word}':*"] for word in typed}
        for row in rows:
            alternatives[row.typed].append(f"'{row.word}'")
        known = [" | ".join(words) for words in alternatives.values() if len(words) > 1]
        return " & ".join(f"({words})" for words in known) or None


def _vary(word: str) -> set[str]:
    """Return what a word may have been meant as: one letter changed, missing or too many, or two swapped."""
    halves = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    return {
        *(left + right[1:] for left, right in halves if right),
        *(left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1),
        *(left + letter + right[1:] for left, right in halves if right for letter in _LETTERS),
        *(left + letter + right for left, right in halves for letter in _LETTERS),
    } - {word, ""}


def _statement(statement: str, scope: SearchArea, *, others: bool = False) -> Any:  # noqa: ANN401  # SQLAlchemy's TextClause is generic nowhere else
    words = WORDS_OF_NAME if scope.municipio_id is None else WORDS_AS_READ
    return text(
        statement.format(
            scope="AND municipio_id BETWEEN :first AND :last" if _bounds(scope) else "",
            words=words,
            others=f"AND {WORDS_AS_READ} @@ CAST(CAST(:others AS text) AS tsquery)" if others else "",
            place=PLACE,
            parents=PARENTS,
        )
    )


def _bounds(scope: SearchArea) -> dict[str, int]:
    """Return the lowest and the highest municipio that may be; of another estado's municipio, none."""
    ranges = []
    if scope.municipio_id is not None:
        ranges.append((scope.municipio_id, scope.municipio_id))
    if scope.estado_id is not None:
        ranges.append(municipalities_of(scope.estado_id))
    if not ranges:
        return {}
    return {"first": max(first for first, _ in ranges), "last": min(last for _, last in ranges)}
