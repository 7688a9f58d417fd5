"""A client that sends requests at a steady rate and checks every response."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import httpx

from tests.support.records import Truth
from tests.support.wire import LOCALIDADES

REFUSED_WITHIN = 2.0  # seconds, as the service promises
MARGIN = 0.3  # seconds of tolerance, stalls of a busy machine excluded
TICK = 0.05  # seconds

Kind = Literal["answered", "refused", "wrong"]


class Question(NamedTuple):
    """A request, and its expected body for the release that the response names."""

    target: str
    expected: Callable[[str], bytes]
    release: str | None = None  # the release requested by name
    is_held: bool = False  # in the service's memory: it needs no database


class Outcome(NamedTuple):
    """The outcome of a request."""

    question: Question
    kind: Kind
    release: str  # that answered
    note: str
    sent: float  # by the load's clock, like the next
    ended: float


@dataclass
class Load:
    """The outcomes of all requests of a test."""

    outcomes: list[Outcome] = field(default_factory=list)
    _late: float = 0  # seconds, in total, for which a busy machine stalled this process
    _due: float = float("inf")  # the time of the next tick of the clock

    def clock(self) -> float:
        """Return the time without the stalls of a busy machine, in seconds."""
        return min(time.monotonic(), self._due) - self._late

    async def keep_clock(self) -> None:
        """Add up the delays of short sleeps, forever."""
        while True:
            self._due = time.monotonic() + TICK
            await asyncio.sleep(TICK)
            self._late += max(0, time.monotonic() - self._due)

    def count(self, kind: Kind) -> int:
        """Count the outcomes of a kind."""
        return sum(outcome.kind == kind for outcome in self.outcomes)

    def wrong(self) -> Counter[str]:
        """Return the wrong outcomes with their counts."""
        return Counter(outcome.note for outcome in self.outcomes if outcome.kind == "wrong")

    def releases(self, since: float = 0) -> set[str]:
        """Return the releases of responses to requests that name none."""
        return {
            outcome.release
            for outcome in self.outcomes
            if outcome.kind == "answered" and outcome.sent >= since and not outcome.question.release
        }

    def returns_to(self, older: str, newer: str) -> int:
        """Count responses of a release to requests sent after a response of a newer one."""
        current = [outcome for outcome in self.outcomes if outcome.kind == "answered" and not outcome.question.release]
        since = min((outcome.ended for outcome in current if outcome.release == newer), default=float("inf"))
        return sum(outcome.release == older and outcome.sent > since for outcome in current)


def pages(truth: Truth, release: str | None = None, *, are_held: bool = False) -> list[Question]:
    """Return a request for every page that all releases have, of a named release or the current one."""
    pinned = f"&release={release}" if release else ""
    return [
        Question(f"{LOCALIDADES}?page={number}{pinned}", partial(truth.page, number=number), release, are_held)
        for number in range(1, min(map(truth.count_pages, truth.releases)))
    ]


def lookups(truth: Truth, release: str | None = None) -> list[Question]:
    """Return requests for single localities and lists of municipios, which need the database."""
    pinned = f"&release={release}" if release else ""
    keys = truth.common_keys()[::9]
    return [
        *(Question(f"{LOCALIDADES}{key}/?{pinned[1:]}", partial(truth.locality, key=key), release) for key in keys),
        *(
            Question(
                f"{LOCALIDADES}?municipio_id={municipio}{pinned}",
                partial(truth.page, number=1, municipio_id=municipio),
                release,
            )
            for municipio in {key // 10_000 for key in keys}
        ),
    ]


@asynccontextmanager
async def load(result: Load, base: str, questions: Sequence[Question], rate: float) -> AsyncIterator[None]:
    """Send `rate` requests per second while the block runs, then wait for the remaining responses.

    Requests missed while the machine was busy are not made up for.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    asking: set[asyncio.Task[None]] = set()
    async with httpx.AsyncClient(base_url=base, timeout=10, limits=limits) as client:

        async def pace() -> None:
            chosen = random.Random(rate)  # noqa: S311  # the same requests in every run
            due = result.clock()
            while True:
                task = asyncio.create_task(_ask(client, chosen.choice(questions), result))
                asking.add(task)
                task.add_done_callback(asking.discard)
                due += 1 / rate
                await asyncio.sleep(max(0, due - result.clock()))

        keeping, pacing = asyncio.create_task(result.keep_clock()), asyncio.create_task(pace())
        try:
            yield
        finally:
            pacing.cancel()
            await asyncio.gather(*asking)
            keeping.cancel()


async def _ask(client: httpx.AsyncClient, question: Question, result: Load) -> None:
    sent = result.clock()
    release = ""
    kind: Kind
    try:
        answer = await client.get(question.target)
        release = answer.headers.get("catalogue-release", "")
        kind, note = judge(question, answer, release, result.clock() - sent)
    except Exception as error:  # noqa: BLE001  # any exception is a missing response
        kind, note = "wrong", f"{error!r} for {question.target}"
    result.outcomes.append(Outcome(question, kind, release, note, sent, result.clock()))


def judge(question: Question, answer: httpx.Response, release: str, seconds: float) -> tuple[Kind, str]:
    """Return whether a response is right, a proper refusal in time, or wrong, with the reason."""
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        is_honest = answer.headers.get("retry-after", "").isdigit() and "problem+json" in answer.headers["content-type"]
        if is_honest and seconds <= REFUSED_WITHIN + MARGIN:
            return "refused", ""
        return "wrong", f"503 after {seconds:.1f} s"
    if answer.status_code != httpx.codes.OK:
        return "wrong", f"{answer.status_code} for {question.target}"
    if question.release not in {None, release}:
        return "wrong", f"release {release} for {question.target}"
    if answer.content != question.expected(release):
        return "wrong", f"not {release}'s: {question.target} gives {answer.text[:200]}"
    return "answered", ""
