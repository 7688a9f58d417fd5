"""The index of names: suggestions, searches and matches, without a database."""

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.match_areas import AreaMatcher
from localidades_api.names.matcher import Matcher
from localidades_api.names.places import MAX_TEXT, Suggested
from localidades_api.names.rows import MatchResult, MatchRow
from localidades_api.names.suggestions.find import Finder
from localidades_api.names.suggestions.suggest import Suggester
from localidades_api.names.weights import SURE

_LOCALITIES: frozenset[PlaceKind] = frozenset({"localidad"})


@cache
def _digest_of_code() -> str:
    hashed = blake2b(digest_size=6)
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("*")):
        if file.suffix in {".py", ".tsv"}:
            hashed.update(f"\n{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return hashed.hexdigest()


class NameIndex(IndexReader):
    """The index in a folder, for suggestions, searches and matches by any number of threads and processes.

    Only the first `MAX_TEXT` characters of a text count: none is longer in the catalogue, and time and the caches of
    words and areas grow with it.
    """

    def __init__(self, folder: Path) -> None:
        """Open it; raise IndexUnreadableError if the folder holds no index, or not all of one."""
        super().__init__(folder)
        # The folder is named by a digest of what the index is made from; other code may answer otherwise from it.
        self.digest = blake2b(f"{folder.name} {_digest_of_code()}".encode(), digest_size=6).hexdigest()
        self._suggester = Suggester(self)
        self._finder = Finder(self)
        self._matcher = Matcher(self)
        self._area_matcher = AreaMatcher(self)

    def suggest(
        self,
        text: str,
        *,
        kinds: Collection[PlaceKind] = _LOCALITIES,
        estado_id: int | None = None,
        municipio_id: int | None = None,
        limit: int = 10,
    ) -> list[Suggested]:
        """Return suggestions for a text, the likeliest first; its last word may be unfinished."""
        return self._suggester.suggest(text[:MAX_TEXT], kinds, estado_id, municipio_id, limit)

    def find(self, text: str, filters: LocalityFilters) -> list[int]:
        """Return the positions of the places that a search and the other filters select, in the list's order.

        `text` is the search as `names.find.searched` returns it.
        """
        return self._finder.find(text, filters)

    def find_areas(self, text: str, kind: PlaceKind) -> list[int]:
        """Return the keys of the estados or municipios that a search finds, the likeliest first, as `suggest` does."""
        return self._suggester.areas.find(text[:MAX_TEXT], kind)

    def at(self, positions: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Yield the key and the name of the place at each position of the list."""
        return self.layout.at(positions)

    def match(self, row: MatchRow, sure: float = SURE) -> MatchResult:
        """Return the place or area for a row, what differs, and how certain it is; `sure` is the bound of certainty."""
        return (self._matcher if row.kind == "localidad" else self._area_matcher).match(row.clipped(), sure)

    def candidates(self, row: MatchRow) -> tuple[list[int], list[dict[str, float]]]:
        """Return the keys of the candidates for a row with a name, and the evidence for each."""
        return (self._matcher if row.kind == "localidad" else self._area_matcher).candidates(row.clipped())
