"""Compares the list of a running service with a file of INEGI: `page_walk` reads the list, `compare` finds differences.

No database is needed: any service with the same contract can be checked.
"""

from dataclasses import dataclass
from typing import Protocol

from localidades_api.cli.service import Service
from localidades_api.cli.verification.compare import ListComparison, ListedLocality, compare
from localidades_api.cli.verification.page_walk import Walk, walk_list
from localidades_api.importer.demo.generate import DEMO_LOCALITIES, generate_demo
from localidades_api.importer.extract import open_table, read_table, watch_reading
from localidades_api.importer.source import Source, open_source
from localidades_api.importer.transform import Catalogue, transform
from localidades_api.observability.progress import Counting, ImportStep, Step

__all__ = ["Verification", "VerificationProgress", "VerificationStep", "verify_service"]


class VerificationStep(Step):
    """The steps that follow those of reading the file."""

    WALK = "reading the service's pages"
    COMPARE = "comparing"

    @property
    def unit(self) -> str:
        """The unit of its amounts."""
        return "pages" if self is VerificationStep.WALK else "rows"


class VerificationProgress(Counting, Protocol):
    """An observer of one verification, which includes reading the file."""

    def begin(self, step: Step) -> None:
        """Note that `step` begins, and that the one before it is done."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification; `municipalities` has the names in the file, by key."""

    service: str
    source: str
    sha256: str
    localities: int
    rejected: int
    municipalities: dict[int, str]
    walk: Walk
    comparison: ListComparison

    @property
    def agrees(self) -> bool:
        """Whether the service agrees with the file.

        A service may number records in its own way, and then order ties as it likes: the contract leaves both open.
        """
        ordered = self.comparison.ties_by_id or not self.comparison.official
        return ordered and not self.comparison.differences and not self.walk.faults


def verify_service(
    source: str, url: str, progress: VerificationProgress, *, release: str | None = None
) -> Verification:
    """Compare the list of the service at `url` with a catalogue: `demo`, a path or an http(s) address.

    Raises CatalogueError for an invalid file, and ServiceError for a service that can't be compared.
    """
    service = Service.parse(url, release)
    with open_source(source, progress) as file:
        progress.begin(ImportStep.READ)
        catalogue = _read(file, progress)
    progress.begin(VerificationStep.WALK)
    walk = walk_list(service, progress)
    progress.begin(VerificationStep.COMPARE)
    return Verification(
        service=service.root,
        source=file.name,
        sha256=file.sha256,
        localities=len(catalogue.localities),
        rejected=len(catalogue.rejected),
        municipalities={key: municipality.nombre for key, municipality in catalogue.municipalities.items()},
        walk=walk,
        comparison=compare([ListedLocality(*locality[:4]) for locality in catalogue.localities], walk.records),
    )


def _read(file: Source, counting: Counting) -> Catalogue:
    if file.file is None:
        table = read_table(file.name, generate_demo(), rows=DEMO_LOCALITIES)
        return transform(table, watch_reading(table, counting))
    with open_table(file.file) as table:
        return transform(table, watch_reading(table, counting))
