"""The names of one municipio, prepared so that those most like a given one are found in microseconds."""

from collections import defaultdict
from collections.abc import Iterable

from rapidfuzz import fuzz, process

_HOMONYMS = 6  # places of one name that are proposed, the most prominent: one more than a result shows
_LEAST_LIKENESS = 60  # of 100, letter by letter; below it two names have nothing in common


class Block:
    """The normalised names of a municipio, and the rows of the places that each belongs to."""

    def __init__(self, names: Iterable[str], rows: Iterable[int]) -> None:
        by_name: dict[str, list[int]] = defaultdict(list)
        for name, row in zip(names, rows, strict=True):
            by_name[name].append(row)
        self._names = list(by_name)
        self._rows = [found[:_HOMONYMS] for found in by_name.values()]
        self._letters = [len(name) - name.count(" ") for name in self._names]
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for index, name in enumerate(self._names):
            for word in name.split(" "):
                self._by_word[word].append(index)

    def most_similar(self, words: Iterable[str], essence: Iterable[str], limit: int) -> dict[int, None]:
        """Return the rows of the names with most letters of these words, and of those spelt most like them.

        `essence` are the words without those for the kind of a place.
        """
        found = dict.fromkeys(row for index in self._sharing(essence, limit) for row in self._rows[index])
        spelt, bare = " ".join(words), " ".join(essence)
        for text in {spelt, bare}:
            for _, _, index in process.extract(
                text, self._names, scorer=fuzz.ratio, limit=limit, score_cutoff=_LEAST_LIKENESS
            ):
                found |= dict.fromkeys(self._rows[index])
        return found

    def _sharing(self, essence: Iterable[str], limit: int) -> list[int]:
        shared: dict[int, int] = defaultdict(int)
        letters = 0
        for word in set(essence):
            letters += len(word)
            for index in self._by_word.get(word, ()):
                shared[index] += len(word)
        ranked = sorted(shared, key=lambda index: -shared[index] / (letters + self._letters[index] - shared[index]))
        return ranked[:limit]
