"""The figures of a run, as written to results.json."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.series import Series


@dataclass(slots=True)
class Results:
    """All figures of a run; a part that was not measured is empty.

    `throughput`: by figure, contender and target; `startup` and `walk`: by contender and figure; `sizes`: by number of
    localities; `queries` and `downloads`: by kind of request and figure; the others by figure.
    """

    machine: dict[str, object]
    options: dict[str, object]
    throughput: dict[str, dict[str, dict[str, Series]]] = field(default_factory=dict)
    startup: dict[str, dict[str, Series]] = field(default_factory=dict)
    memory: dict[str, Series] = field(default_factory=dict)
    walk: dict[str, dict[str, Series]] = field(default_factory=dict)
    imports: dict[str, Series] = field(default_factory=dict)
    sizes: dict[str, Series] = field(default_factory=dict)
    publication: dict[str, Series] = field(default_factory=dict)
    queries: dict[str, dict[str, Series]] = field(default_factory=dict)
    downloads: dict[str, dict[str, Series]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write all figures, including those of every round."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
