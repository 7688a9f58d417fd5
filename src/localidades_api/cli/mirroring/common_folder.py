"""The files of a mirror that belong to no single release: the list of releases, and problems."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel
from pydantic_core import from_json

from localidades_api.api.problems import PROBLEMS, ResponsePreferences, problem_of
from localidades_api.catalogue.schemas import MAX_PAGE_SIZE
from localidades_api.cli.mirroring.upstream import Head, Upstream, fetch
from localidades_api.errors import (
    InvalidParametersError,
    LocalidadesError,
    MethodNotAllowedError,
    MirrorError,
    NotAcceptableError,
    NotMirroredError,
    UnavailableError,
)
from localidades_api.http.paths import LOCALIDADES, PREFIX

_RELEASES = f"{PREFIX}/releases/"
_OK, _NOT_FOUND = 200, 404
# Answers of the service that are the same for every address of a kind.
_ASKED: Mapping[str, tuple[str, int]] = {
    "releases": (f"{_RELEASES}?format=json", _OK),
    f"releases-{MAX_PAGE_SIZE}": (f"{_RELEASES}?page_size={MAX_PAGE_SIZE}&format=json", _OK),
    "types": (f"{PROBLEMS}?format=json", _OK),
    "path": (f"{PREFIX}/nothing", _NOT_FOUND),
    "key": (f"{LOCALIDADES}1/?format=json", _NOT_FOUND),
    "release": (f"{PREFIX}/?release=no-such-release", _NOT_FOUND),
}
_MADE: Mapping[str, LocalidadesError] = {
    "method": MethodNotAllowedError(),
    "accept": NotAcceptableError(["application/json"], "This mirror has JSON only: accept application/json."),
    "query": InvalidParametersError(
        [("query", "A parameter is unknown, repeated, or has a value that this address does not take.")]
    ),
    "not-mirrored": NotMirroredError(),
    "away": UnavailableError("The service behind this mirror does not answer; what the mirror holds is still served."),
}


class CommonFolder(BaseModel):
    """The folder of what is common, whose name has the digest of its files; `releases` are listed oldest first.

    `headers` are those of the list of releases, `links` its Link by page size.
    """

    folder: str
    current: str
    releases: list[str]
    headers: dict[str, str]
    links: dict[str, str]

    @classmethod
    async def read(cls, upstream: Upstream) -> tuple[Self, dict[str, bytes]]:
        """Ask for all of it, and return it with the files."""
        answers = {name: await _ask(upstream, *asked) for name, asked in _ASKED.items()}
        bodies = {f"{name}.json": body for name, (_, body) in answers.items()}
        bodies |= {
            f"{name}.json": bytes(problem_of(error, ResponsePreferences()).body) for name, error in _MADE.items()
        }
        listed = from_json(answers[f"releases-{MAX_PAGE_SIZE}"][1])["results"]
        current = next((one["release"] for one in listed if one["current"]), None)
        if current is None:
            raise MirrorError("The service has no current release: import a catalogue first.")
        digest = hashlib.sha256(b"".join(bodies[name] for name in sorted(bodies))).hexdigest()[:12]
        heads = {name: answers[name][0].headers for name in ("releases", f"releases-{MAX_PAGE_SIZE}")}
        common = cls(
            folder=f"common-{digest}",
            current=current,
            releases=[one["release"] for one in listed],
            headers={
                name: heads["releases"][name]
                for name in ("cache-control", "catalogue-release", "etag", "last-modified")
            },
            links={name: headers["link"] for name, headers in heads.items()},
        )
        return common, bodies

    def write(self, mirror: Path, bodies: Mapping[str, bytes]) -> None:
        """Write the folder, unless it is there."""
        place = mirror / self.folder
        if place.exists():
            return
        draft = mirror / f".{self.folder}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        for name, body in bodies.items():
            (draft / name).write_bytes(body)
        draft.rename(place)


async def _ask(upstream: Upstream, target: str, status: int) -> tuple[Head, bytes]:
    head, body = await fetch(upstream, target)
    if head.status != status:
        raise MirrorError(f"The service answers {head.status} for {target}, not {status}.")
    return head, body
