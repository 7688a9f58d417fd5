"""Copies scripts out of the npm packages that tests/browser pins: `python -m tests.browser.vendored`."""

from pathlib import Path
from typing import NamedTuple

import brotli  # type: ignore[import-untyped]

from tests.support.wire import ROOT

_PACKAGES = ROOT / "tests" / "browser" / "node_modules"
_STATIC = ROOT / "src" / "localidades_api" / "html" / "static"


class Vendored(NamedTuple):
    """A package: its folder, the target folder, and the scripts and licence to copy."""

    package: Path
    folder: Path
    scripts: tuple[str, ...]
    licence: str


VENDORED = [
    Vendored(
        _PACKAGES / "maplibre-gl",
        _STATIC / "maplibre",
        ("dist/maplibre-gl.mjs", "dist/maplibre-gl-worker.mjs"),
        "LICENSE.txt",
    ),
    Vendored(_PACKAGES / "delaunator", _STATIC / "delaunator", ("delaunator.min.js",), "LICENSE"),
]


def copy() -> None:
    """Write the scripts, compressed, and the licences."""
    for package, folder, scripts, licence in VENDORED:
        folder.mkdir(exist_ok=True)
        for script in scripts:
            target = folder / f"{Path(script).name}.br"
            target.write_bytes(brotli.compress((package / script).read_bytes()))
        (folder / licence).write_bytes((package / licence).read_bytes())


if __name__ == "__main__":
    copy()
