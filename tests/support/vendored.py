"""Copies MapLibre out of the npm package that tests/browser pins: `python -m tests.support.vendored`."""

import brotli  # type: ignore[import-untyped]

from tests.support.wire import ROOT

PACKAGE = ROOT / "tests" / "browser" / "node_modules" / "maplibre-gl"
FOLDER = ROOT / "src" / "localidades_api" / "html" / "static" / "maplibre"
SCRIPTS = ("maplibre-gl.mjs", "maplibre-gl-worker.mjs")
LICENCE = "LICENSE.txt"


def copy() -> None:
    """Write the scripts, compressed, and the licence."""
    FOLDER.mkdir(exist_ok=True)
    for name in SCRIPTS:
        (FOLDER / f"{name}.br").write_bytes(brotli.compress((PACKAGE / "dist" / name).read_bytes()))
    (FOLDER / LICENCE).write_bytes((PACKAGE / LICENCE).read_bytes())


if __name__ == "__main__":
    copy()
