"""Reads units of deploy/ as systemd does, for tests without systemd."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.wire import ROOT

UNITS = ROOT / "deploy" / "systemd"
PROGRAM = "/opt/localidades-api/bin/localidades-api"  # as in the units


@dataclass(frozen=True)
class Service:
    """A unit that runs commands one after the other."""

    user: str
    commands: list[list[str]]
    variables: dict[str, str]
    success: set[int]  # exit codes


def read_service(unit: str, read: Callable[[str], str | None]) -> Service:
    """Return the commands of a unit; `read` returns the text of an environment file, or None if it is missing."""
    text = (UNITS / unit).read_text(encoding="utf-8")

    def values(name: str) -> list[str]:
        return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)

    variables: dict[str, str] = dict(re.findall(r"^(\w+)=(.*)$", "\n".join(values("Environment")), re.MULTILINE))
    for path in values("EnvironmentFile"):
        given = read(path.removeprefix("-"))
        assert given is not None or path.startswith("-"), path
        variables |= dict(re.findall(r"^(\w+)=(.*)$", given or "", re.MULTILINE))
    if state := values("StateDirectory"):
        variables["STATE_DIRECTORY"] = f"/var/lib/{state[0]}"
    (user,) = values("User")

    def expanded(word: str) -> str:
        named = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word)
        return named.replace("$$", "$").replace("%%", "%")

    commands = [[expanded(word) for word in shlex.split(command)] for command in values("ExecStart")]
    return Service(user, commands, variables, {0, *map(int, values("SuccessExitStatus"))})
