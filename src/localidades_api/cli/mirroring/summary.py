"""Sums up a mirrored release for the web server: the headers that its answers share, lists, and downloads."""

import re

from pydantic import BaseModel

from localidades_api.catalogue.pagination import link_header
from localidades_api.cli.mirroring.plan import ListOf, Plan
from localidades_api.cli.mirroring.release_folder import ReleaseFolder
from localidades_api.errors import MirrorError

_OF_EACH = {"link", "content-type", "vary", "allow"}
_LOCALITY = re.compile("localidades/[0-9]+/")
_FILES = ("download/", "changes/")


class MirroredList(BaseModel):
    """A list: its folder in the release, and how many pages it has."""

    name: str
    pages: int


class MirroredRelease(BaseModel):
    """A release that a mirror holds; `headers` are those of its JSON answers, `files` has those of each download."""

    release: str
    folder: str
    headers: dict[str, str]
    lists: list[MirroredList]
    files: dict[str, dict[str, str]]
    localities: int


def summarize(plan: Plan, folder: str, draft: ReleaseFolder) -> MirroredRelease:
    """Hold every answer's headers to the rules from which the web server makes them; raise MirrorError if one differs.

    The rules: JSON answers of a release have the same headers, and Link follows from the number of a page.
    """
    lists = {one.name: one for one in plan.lists}
    common: dict[str, str] = {}
    files: dict[str, dict[str, str]] = {}
    localities = 0
    for entry in (entry for unit in plan.units for entry in draft.entries(unit)):
        localities += bool(_LOCALITY.match(entry["path"]))
        if "headers" not in entry or entry["status"] != 200:  # noqa: PLR2004  # problems share nothing of a release
            continue
        path, headers = entry["path"], entry["headers"]
        if path.startswith(_FILES):
            files[path] = headers
            continue
        shared = {name: value for name, value in headers.items() if name not in _OF_EACH}
        common = common or shared
        name, _, file = path.rpartition("/")
        link = _link(lists[name], plan.release, int(file.removesuffix(".json"))) if name in lists else None
        if shared != common or headers.get("link") != link:
            raise MirrorError(f"The headers of {entry['target']} differ from those that nginx would send.")
    if localities != plan.localities:
        raise MirrorError(
            f"The service gave {localities} localities of release {plan.release}, which has {plan.localities}."
        )
    return MirroredRelease(
        release=plan.release,
        folder=folder,
        headers=common,
        lists=[MirroredList(name=one.name, pages=one.pages) for one in plan.lists],
        files=files,
        localities=plan.localities,
    )


def _link(of: ListOf, release: str, page: int) -> str:
    parameters = dict(part.split("=") for part in of.parameters.split("&") if part)
    return link_header(of.path, {"format": "json", "release": release, **parameters}, page, of.pages)
