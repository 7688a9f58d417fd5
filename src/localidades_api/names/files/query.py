"""Parses typed text and queries the index of words: the fields of its documents, and the queries that find places."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tantivy import Index, Occur, Order, Query, Schema, SchemaBuilder, Searcher

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.files.layout import TOP_WORDS, WORDS, IndexUnreadableError
from localidades_api.names.reading.text import canonical, canonical_words, repair
from localidades_api.names.reading.vocabulary import ARTICLES, GENERICS, STOP_WORDS

MAX_BEGINNING = 2  # letters of any word of a place: too many words begin so to look each of them up
MAX_START = 3  # letters of a name
_BEGINNINGS_OF_STOP_WORDS = frozenset(word[:length] for word in STOP_WORDS for length in range(1, len(word) + 1))
_CLAVE = re.compile(r"\([0-9]{1,4}\)?")
_PIECE = 16_384  # places of a search that are read at once
_MAX_WORDS = 10  # of a text; labels are looked up whole
_SHORT = 3  # letters: a shorter word has no letters wrong
_LONG = 8  # letters: in a word of at least as many, two may be wrong
MAX_WRONG = 2  # letters of a word


def schema() -> Schema:
    """Return the fields of a document.

    `name` has the canonical words of its names, `raw` the other words of its names, `text` the canonical words of its
    names and areas; `begin` and `start` have beginnings; `scope` has its areas, clave and ambito; `rank` is its row;
    `position` is its position in the list.
    """
    builder = SchemaBuilder()
    for field in ("name", "raw", "text", "begin", "start", "scope"):
        builder.add_text_field(field, index_option="basic", tokenizer_name="whitespace")
    builder.add_unsigned_field("rank", fast=True)
    builder.add_unsigned_field("position", fast=True)
    return builder.build()


class ParsedQuery(NamedTuple):
    """A typed text, taken apart."""

    text: str
    folded: str
    words: tuple[str, ...]  # canonical
    unfinished: str | None  # the last word as typed, if it may go on
    is_cut: bool = False  # an article, `de`, the beginning of one, or a clave was left out of `words`


def read(text: str) -> ParsedQuery:
    """Take a text apart in the likeliest way."""
    return readings(text)[0]


def readings(text: str) -> list[ParsedQuery]:
    """Take a text apart in each way that it can go on, the likeliest first.

    A last word such as `d` may begin a name (`Oaxaca Díaz`) or a stop word (`Oaxaca de`). Digits in brackets may be the
    clave in a label.
    """
    text = repair(text)
    folded = fold(text)
    spoken = folded.split()
    last = spoken[-1] if spoken and _may_go_on(text, spoken[-1]) else None
    words = canonical_words(folded)
    whole = ParsedQuery(text, folded, words[:_MAX_WORDS], last)
    if spoken and STOP_WORDS.issuperset(spoken[:-1]) and spoken[-1] in _BEGINNINGS_OF_STOP_WORDS:
        return [whole._replace(words=(spoken[-1],), unfinished=spoken[-1], is_cut=len(spoken) > 1)]  # `La `, `La E`
    if spoken and spoken[-1] in (_BEGINNINGS_OF_STOP_WORDS if last else STOP_WORDS):
        before = canonical_words(" ".join(spoken[:-1]))
        cut = whole._replace(words=before[:_MAX_WORDS], unfinished=None, is_cut=True)
        return [cut, whole._replace(words=(*before[: _MAX_WORDS - 1], last))] if last else [cut]
    if "(" in text and (named := _CLAVE.sub(" ", text)) != text and (words := canonical(named)):
        cut = whole._replace(words=words[:_MAX_WORDS], unfinished=None, is_cut=True)
        return [cut, whole]
    if last and len(spoken) == 2 and spoken[0] in ARTICLES and len(last) <= MAX_BEGINNING:  # noqa: PLR2004  # `Los M`
        return [whole._replace(is_cut=True)]
    return [whole]


def _may_go_on(text: str, word: str) -> bool:
    """Return whether the last word of a text may go on: after a letter or its dot; an initial also after a space."""
    if text.rstrip()[-1:] == ".":
        return text[-1] == "." or len(word) == 1
    return " " not in fold(f"x{text[-1]}x")  # accents and apostrophes belong to words


class WordIndex:
    """The open index of words."""

    def __init__(self, folder: Path) -> None:
        """Raise IndexUnreadableError if the folder does not hold all files."""
        self._schema = schema()
        try:
            self._searcher, self._top = map(self._open, (folder / WORDS, folder / TOP_WORDS))
        except (OSError, ValueError) as error:
            raise IndexUnreadableError(f"{folder} holds an index with damaged words: build it again.") from error

    def _open(self, folder: Path) -> Searcher:
        searcher = Index.open(str(folder)).searcher()
        searcher.search(self.word("name", ""), 1)  # only a search finds that some files are missing
        return searcher

    def propose(self, query: Query, limit: int, *, is_rare: bool = False) -> list[int]:
        """Return the first rows that a query finds, in order.

        The smaller index of the first rows comes first: it takes a tenth of the time, and often has as many as
        `limit`. A query that `is_rare` finds too few there, and goes to the index of all rows at once.
        """
        for searcher in (self._searcher,) if is_rare else (self._top, self._searcher):
            found = searcher.search(query, limit, count=False, order_by_field="rank", order=Order.Asc).hits
            if len(found) == limit:
                break
        return [rank for rank, _ in found]

    def positions(self, query: Query) -> list[int]:
        """Return the positions in the list of all places that a query finds, in order.

        They come in pieces: the interpreter, which a search leaves to other threads, is held to read each.
        """
        found: list[int] = []
        while len(found) % _PIECE == 0:
            piece = self._searcher.search(
                query, _PIECE, count=False, order_by_field="position", offset=len(found), order=Order.Asc
            ).hits
            if not piece:
                break
            found += [position for position, _ in piece]
        return found

    def beginning(self, folded: str, scopes: Iterable[str]) -> Query:
        """Find names that begin with a few letters."""
        return self.within(Query.term_query(self._schema, "start", folded.replace(" ", "_")), scopes)

    def with_article(self, typed: ParsedQuery, scopes: Iterable[str]) -> Query | None:
        """Find names that begin with an article and have every word, the last of them begun."""
        words = self.all_words(typed, "name", scopes)
        return words and all_of([self.beginning(typed.folded[:MAX_START].strip(), ()), words])

    def area(self, scope: str) -> Query:
        """Find the places of an area."""
        return self.word("scope", scope)

    def place(self, id_: int) -> Query:
        """Find the place with a key."""
        municipio_id, clave = divmod(id_, KEYS_OF_A_MUNICIPIO)
        return all_of([self.word("scope", f"m{municipio_id}"), self.word("scope", f"c{clave:04d}")])

    def all_words(self, typed: ParsedQuery, field: str, scopes: Iterable[str]) -> Query | None:
        """Find places with every word in a field, the last of them whole or begun; None if no place has a whole one."""
        whole = typed.words[:-1] if typed.unfinished else typed.words
        if not all(self._searcher.doc_freq(field, word) for word in whole):
            return None
        parts = [self.word(field, word) for word in whole]
        if typed.unfinished:
            parts.append(self._begun(field, typed.words[-1], typed.unfinished))
        return self.within(all_of(parts), scopes)

    def nearly(
        self, typed: ParsedQuery, scopes: Iterable[str], field: str = "text", most: int = MAX_WRONG
    ) -> Query | None:
        """Find places with every word in a field, letters wrong in the words that no place has, or in any one word.

        At most `most` letters are wrong in a word. None if no word can have any, or if fewer than `MAX_WRONG` exclude
        nothing from the search for unknown words.
        """
        words = tuple(dict.fromkeys(typed.words))
        unknown = {word for word in words if not self._searcher.doc_freq(field, word)}
        if most < MAX_WRONG and all(wrong_letters(word) <= most for word in unknown):
            return None
        exact = {word: self.word(field, word) for word in words}
        loose = {word: self._loose(word, typed, field, most) for word in words}
        if unknown:
            return self.within(all_of([loose[word] if word in unknown else exact[word] for word in words]), scopes)
        variants = [
            all_of([loose[word] if word == wrong else exact[word] for word in words])
            for wrong in words
            if len(wrong) >= _SHORT
        ]
        return self.within(any_of(variants), scopes) if variants else None

    def without_kinds(self, typed: ParsedQuery, scopes: Iterable[str]) -> Query | None:
        """Find places by every word except those for the kind of a place; letters may be wrong."""
        words = [word for word in dict.fromkeys(typed.words) if word not in GENERICS]
        if not words or GENERICS.isdisjoint(typed.words):
            return None
        return self.within(all_of([self._loose(word, typed) for word in words]), scopes)

    def most_words(self, typed: ParsedQuery, scopes: Iterable[str]) -> Query | None:
        """Find places by all words but one, without those for the kind of a place; letters may be wrong."""
        every = tuple(dict.fromkeys(typed.words))
        words = [word for word in every if word not in GENERICS] or every
        if len(words) < 2:  # noqa: PLR2004  # a single word can't be left out
            return None
        loose = [(Occur.Should, self._loose(word, typed)) for word in words]
        return self.within(Query.boolean_query(loose, len(words) - 1), scopes)

    def count(self, word: str) -> int:
        """Return how many places have a canonical word in one of their names."""
        return self._searcher.doc_freq("name", word)

    def word(self, field: str, word: str) -> Query:
        """Find places with a word in a field."""
        return Query.term_query(self._schema, field, word)

    def _begun(self, field: str, word: str, unfinished: str) -> Query:
        begun = self._prefix(field, unfinished)
        return begun if unfinished == word else any_of([self.word(field, word), begun])

    def _prefix(self, field: str, beginning: str) -> Query:
        return self.word("begin", beginning) if len(beginning) <= MAX_BEGINNING else self.like(field, beginning, 0)

    def like(self, field: str, word: str, distance: int, *, prefix: bool = True) -> Query:
        """Find places with a word in a field that is, or begins with, this one, with up to `distance` letters wrong."""
        return Query.fuzzy_term_query(self._schema, field, word, distance, prefix=prefix)

    def _loose(self, word: str, typed: ParsedQuery, field: str = "text", most: int = MAX_WRONG) -> Query:
        unfinished = typed.unfinished if word == typed.words[-1] else None
        if len(word) < _SHORT:
            return self._begun(field, word, unfinished) if unfinished else self.word(field, word)
        fuzzy = self.like(field, unfinished or word, min(wrong_letters(word), most), prefix=bool(unfinished))
        return any_of([self.word(field, word), fuzzy])

    def within(self, query: Query, scopes: Iterable[str]) -> Query:
        """Narrow a query to places with all of these terms in their scope."""
        filters = [self.word("scope", scope) for scope in scopes]
        return all_of([query, *filters]) if filters else query


def wrong_letters(word: str) -> int:
    """Return how many letters of a word may be wrong."""
    return 0 if len(word) < _SHORT else MAX_WRONG if len(word) >= _LONG else 1


def all_of(parts: Sequence[Query]) -> Query:
    """Return the query for places that all of these find."""
    return parts[0] if len(parts) == 1 else Query.boolean_query([(Occur.Must, part) for part in parts])


def any_of(parts: Sequence[Query]) -> Query:
    """Return the query for places that any of these finds."""
    return parts[0] if len(parts) == 1 else Query.boolean_query([(Occur.Should, part) for part in parts])
