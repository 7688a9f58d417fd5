"""Scrapes metrics as Prometheus does."""

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from tests.support.waiting import eventually
from tests.support.wire import ask

Metrics = dict[tuple[str, frozenset[str]], float]


def read_metrics(text: str) -> Metrics:
    """Return every sample by its name and the values of its labels."""
    return {
        (sample.name.removeprefix("localidades_"), frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(base: str) -> Metrics:
    answer = ask(base, "/metrics")
    assert answer.status == 200
    assert answer.one("content-type").startswith("text/plain; version=")
    return read_metrics(answer.body.decode())


def value(metrics: Metrics, name: str, *labels: str) -> float:
    return metrics.get((name, frozenset(labels)), 0)


def await_metrics(base: str, condition: Callable[[Metrics], bool]) -> Metrics:
    """Scrape until a condition holds: metrics lag by a second, and workers take a while to start."""
    seen: list[Metrics] = []

    def holds() -> bool:
        seen[:] = [scrape(base)]
        return condition(seen[0])

    eventually(holds, otherwise=lambda: seen)
    return seen[0]
