"""The command `mirror`: writes a release as files that a web server serves in place of the service."""

import asyncio
import fcntl
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import BaseModel

from localidades_api.cli.console import console, watch_import
from localidades_api.cli.database import ready_database
from localidades_api.cli.mirroring.common_folder import CommonFolder
from localidades_api.cli.mirroring.nginx import write_configuration
from localidades_api.cli.mirroring.plan import Plan, earlier_releases, plan_release
from localidades_api.cli.mirroring.release_folder import ReleaseFolder
from localidades_api.cli.mirroring.summary import MirroredRelease, summarize
from localidades_api.cli.mirroring.writers import UpstreamAddress, await_writers, write_units
from localidades_api.errors import MirrorError
from localidades_api.observability.progress import Counting, MirrorStep
from localidades_api.settings import read_settings

POINTER = "mirror.json"
_LOCK = ".lock"
_SUMMARY = "release.json"


class Pointer(BaseModel):
    """What mirror.json says: the current release, the folder of each release, and that of what they share."""

    current: str
    releases: dict[str, str]
    common: str


@dataclass(frozen=True, slots=True)
class MirrorJob:
    """What is to be mirrored: a release, or the current one for None, of a service or of the database."""

    folder: Path
    release: str | None
    url: str | None
    origin: httpx.URL | None
    processes: int


def run_mirror(job: MirrorJob) -> None:
    """Write what the mirror lacks of a release, then move the pointer; raise MirrorError if either can't be done."""
    try:
        with ExitStack() as stack:
            stack.enter_context(_locked(job.folder))
            settings = read_settings()
            database = stack.enter_context(ready_database(settings)) if job.url is None else ""
            address = UpstreamAddress(settings, job.url, database)
            progress = stack.enter_context(watch_import())
            progress.begin(MirrorStep.PLAN)
            common, bodies, plan = asyncio.run(_plan(address, job.release))
            progress.begin(MirrorStep.WRITE)
            release = _write_release(job, address, plan, progress)
            common.write(job.folder, bodies)
            pointer = _publish(job, common, release)
    except OSError as error:
        raise MirrorError(f"The mirror can't be written: {error}. Run the command again to go on.") from error
    console.print(
        f"{job.folder / release.folder} holds release {release.release}; the current one is {pointer.current}\n"
        f"serve it with nginx -c {job.folder.resolve() / 'nginx.conf'}, or reload an nginx that serves it",
        markup=False,
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other commands from a mirror; raise MirrorError if one is writing it, or if the folder is none."""
    if folder.exists() and not (folder / _LOCK).exists() and any(folder.iterdir()):
        raise MirrorError(f"{folder} holds something else than a mirror: choose an empty folder, or a new one.")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MirrorError(f"Another command is writing the mirror in {folder}: wait for it to finish.") from None
        await_writers(folder)
        yield


async def _plan(address: UpstreamAddress, release: str | None) -> tuple[CommonFolder, dict[str, bytes], Plan]:
    async with address.open() as upstream:
        common, bodies = await CommonFolder.read(upstream)
        name = release or common.current
        if name not in common.releases:
            raise MirrorError(f"There is no release {name}; there are {', '.join(common.releases)}.")
        return common, bodies, await plan_release(upstream, name, earlier_releases(common.releases, name))


def _write_release(job: MirrorJob, address: UpstreamAddress, plan: Plan, counting: Counting) -> MirroredRelease:
    """Write a release, or what an interrupted run has left of it, and give it its name once it is whole."""
    name = plan.folder
    place = job.folder / name
    if place.exists():
        return MirroredRelease.model_validate_json((place / _SUMMARY).read_bytes())
    draft = ReleaseFolder(job.folder / f".{name}")
    draft.prepare(plan.units)
    left = []
    for unit in plan.units:
        written = draft.count(unit)
        if written is None:
            left.append(unit)
        else:
            counting.advance(written)
    if left:
        processes = min(job.processes, len(left))
        write_units(address, draft.folder, plan.release, left, processes, counting.advance)
    release = summarize(plan, name, draft)
    (draft.folder / _SUMMARY).write_text(release.model_dump_json(indent=1))
    draft.finish(plan.units, place)
    return release


def _publish(job: MirrorJob, common: CommonFolder, newest: MirroredRelease) -> Pointer:
    """Move the pointer: nginx's configuration, and last the file that other servers and clients read."""
    before = _read_pointer(job.folder)
    held = (
        {name: folder for name, folder in before.releases.items() if (job.folder / folder).is_dir()} if before else {}
    )
    folders = {**held, newest.release: newest.folder}
    releases = [
        MirroredRelease.model_validate_json((job.folder / folder / _SUMMARY).read_bytes())
        for folder in folders.values()
    ]
    wanted = (common.current, before.current if before else newest.release, newest.release)
    current = next(name for name in wanted if name in folders)
    pointer = Pointer(current=current, releases=folders, common=common.folder)
    write_configuration(job.folder, common, releases, current, job.origin)
    draft = job.folder / f".{POINTER}"
    draft.write_text(pointer.model_dump_json(indent=1))
    draft.replace(job.folder / POINTER)
    _remove_unused(job.folder, {common.folder, *([before.common] if before else [])})
    return pointer


def _read_pointer(folder: Path) -> Pointer | None:
    try:
        return Pointer.model_validate_json((folder / POINTER).read_bytes())
    except FileNotFoundError:
        return None


def _remove_unused(mirror: Path, used: set[str]) -> None:
    """Remove common folders that no configuration names any more; an nginx not yet reloaded uses the one before."""
    for folder in mirror.glob("common-*"):
        if folder.name not in used:
            shutil.rmtree(folder)
