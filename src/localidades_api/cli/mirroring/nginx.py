"""The configuration with which a plain nginx serves a mirror under the service's contract.

ETag, Last-Modified and the like are the same for all JSON answers of a release, so a map of a few lines has them. Link
follows from the number of a page: a map leads from each number to the one before and to the one after, since nginx
can't calculate.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import httpx
from jinja2 import Environment, PackageLoader, StrictUndefined

from localidades_api.cli.mirroring.common_folder import CommonFolder
from localidades_api.cli.mirroring.summary import MirroredRelease
from localidades_api.errors import MirrorError, UnavailableError
from localidades_api.http.headers import API_HEADERS

CONFIGURATION = "mirror.conf"
# Where systems have them: Debian and Alpine, Fedora, openSUSE, macOS and BSD.
_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_templates = Environment(  # noqa: S701  # no HTML
    loader=PackageLoader("localidades_api.cli.mirroring"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def quoted(value: str) -> str:
    """Quote a value for nginx's configuration; raise MirrorError if it can't be written there."""
    if "$" in value or not value.isprintable():
        raise MirrorError(f"nginx can't send the header value {value!r}.")
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_templates.filters["quoted"] = quoted
_templates.filters["escaped"] = lambda name: name.replace(".", "\\.")


def _find_authorities() -> str:
    """Return the file of the authorities that this machine trusts; raise MirrorError if none is found."""
    own = os.environ.get("SSL_CERT_FILE")
    found = next((path for path in ([own] if own else _AUTHORITIES) if Path(path).is_file()), None)
    if found is None:
        raise MirrorError(
            "nginx can't verify the origin: no file of trusted authorities is found. Name one in SSL_CERT_FILE."
        )
    return str(Path(found).resolve())


def write_configuration(
    mirror: Path, common: CommonFolder, releases: Sequence[MirroredRelease], current: str, origin: httpx.URL | None
) -> None:
    """Write mirror.conf, which is replaced at once, and the operator's own files where there are none."""
    text = _templates.get_template("mirror.conf").render(
        common=common,
        releases=releases,
        current=next(one for one in releases if one.release == current),
        missing=[name for name in common.releases if name not in {one.release for one in releases}],
        last_page=max(one.pages for release in releases for one in release.lists),
        shared=[(name.decode().title(), value.decode()) for name, value in API_HEADERS],
        of_release=("cache-control", "catalogue-release", "etag", "last-modified"),
        of_files=("cache-control", "etag", "last-modified", "content-type", "content-disposition",
                  "catalogue-records", "catalogue-release"),
        retry_after=UnavailableError.retry_after,
        origin=origin,
        authorities=_find_authorities() if origin and origin.scheme == "https" else "",
    )  # fmt: skip
    draft = mirror / f".{CONFIGURATION}"
    draft.write_text(text, encoding="utf-8")
    root = mirror.resolve()
    for name in ("nginx.conf", "server.conf"):
        if not (mirror / name).exists():
            (mirror / name).write_text(
                _templates.get_template(name).render(root=quoted(str(root)), pid=quoted(str(root / "mirror.pid"))),
                encoding="utf-8",
            )
    draft.replace(mirror / CONFIGURATION)
