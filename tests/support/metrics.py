"""Metrics as Prometheus scrapes them."""

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from tests.support.waiting import eventually
from tests.support.wire import ask

Figures = dict[tuple[str, frozenset[str]], float]


def read_metrics(text: str) -> Figures:
    """Return every sample by its name and the values of its labels."""
    return {
        (sample.name.removeprefix("localidades_"), frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(base: str) -> Figures:
    answer = ask(base, "/metrics")
    assert answer.status == 200
    assert answer.one("content-type").startswith("text/plain; version=")
    return read_metrics(answer.body.decode())


def value(figures: Figures, name: str, *labels: str) -> float:
    return figures.get((name, frozenset(labels)), 0)


def await_metrics(base: str, condition: Callable[[Figures], bool]) -> Figures:
    """Scrape until something holds: figures are a second late, and a worker takes some to start."""
    seen: list[Figures] = []

    def holds() -> bool:
        seen[:] = [scrape(base)]
        return condition(seen[0])

    eventually(holds, otherwise=lambda: seen)
    return seen[0]
