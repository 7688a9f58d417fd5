"""Collects the plan of every statement of some requests, as Postgres ran it.

The application runs in this process, and auto_explain sends each plan along with the rows: so it is the plan that
was used, generic or not, rather than one made for an EXPLAIN.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import httpx
from pydantic import SecretStr
from sqlalchemy import event

from localidades_api.app import create_app
from localidades_api.settings import Settings

# asyncpg sends unknown parameters of an address as settings.
_AUTO_EXPLAIN = (
    "&session_preload_libraries=auto_explain&auto_explain.log_level=notice&auto_explain.log_min_duration=0"
    "&auto_explain.log_parameter_max_length=0"
)
_MESSAGE = re.compile(r"Query Text: (?P<sql>.*?)\n(?P<plan>[^\n]*\(cost=.*)", re.DOTALL)
_OF_LOCALITIES = re.compile(r"\b(FROM|JOIN) (localities|words)\b")
_COSTS = re.compile(r"  \(cost=[^)]*\)")
_VALUES = re.compile(r"('(?:[^']|'')*'|\$\d+|(?<![\w.])-?\d+(\.\d+)?(e-?\d+)?\b)(::[a-z]+( precision)?(\[\])?)?")
_ACCESS = re.compile(r"-> *(.* on (?:localities|words).*)")
_SEQUENTIAL = re.compile(r"Seq Scan on localities")


class Plan(NamedTuple):
    """A plan without costs and values; `times` is how many requests of the group used it.

    Plans that read localities in the same ways count as one, however they join a few estados.
    """

    group: str
    sql: str
    tree: str
    times: int

    @property
    def is_sequential(self) -> bool:
        """Whether the plan reads a whole release to find something in it."""
        return _SEQUENTIAL.search(self.tree) is not None


def explain(url: str, targets: Mapping[str, Sequence[str]]) -> list[Plan]:
    """Request the targets, and return the different plans by which localities were read."""
    return asyncio.run(_explain(url + _AUTO_EXPLAIN, targets))


async def _explain(url: str, targets: Mapping[str, Sequence[str]]) -> list[Plan]:
    told: list[str] = []

    def listen(connection: Any, _record: object) -> None:  # noqa: ANN401  # SQLAlchemy's adapter has no type
        connection.driver_connection.add_log_listener(lambda _, message: told.append(_text(message)))

    counts: Counter[tuple[str, str, str]] = Counter()
    trees: dict[str, str] = {}
    app = create_app(Settings(database_url=SecretStr(url), page_cache_bytes=0))
    async with app.router.lifespan_context(app):
        event.listen(app.state.services.database.engine.sync_engine, "connect", listen)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            for group, asked in targets.items():
                for target in asked:
                    told.clear()
                    (await client.get(target)).raise_for_status()
                    for sql, tree in _read(told):
                        access = " ".join(_ACCESS.findall(tree))
                        counts[group, sql, access] += 1
                        trees.setdefault(sql + access, tree)
    return [Plan(group, sql, trees[sql + access], times) for (group, sql, access), times in counts.items()]


def _text(message: asyncpg.PostgresLogMessage) -> str:
    return str(message.message)


def _read(messages: Sequence[str]) -> list[tuple[str, str]]:
    found = [match for message in messages if (match := _MESSAGE.search(message))]
    return [
        (_VALUES.sub("…", " ".join(match["sql"].split())), _VALUES.sub("…", _COSTS.sub("", match["plan"])))
        for match in found
        if _OF_LOCALITIES.search(match["sql"])
    ]


def write_plans(plans: Sequence[Plan], path: Path) -> None:
    """Format the plans: each statement, then its plans, the most frequent first."""
    by_statement: dict[str, list[Plan]] = defaultdict(list)
    for plan in sorted(plans, key=lambda plan: -plan.times):
        by_statement[plan.sql].append(plan)
    parts = []
    for sql, same in by_statement.items():
        parts.append(f"# {', '.join(sorted({plan.group for plan in same}))}\n{sql}")
        parts += [f"-- {plan.group}: {plan.times} times\n{plan.tree}" for plan in same]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
