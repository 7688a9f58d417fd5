"""ArcGIS Maps SDK for JavaScript reads the collections in a browser, as a program on another origin."""

import asyncio
import json
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser

from tests.support.http_server import Response, at_paths, http_server
from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ask

pytestmark = pytest.mark.tail

FOLDER = Path(__file__).parents[1] / "clients" / "arcgis"
NUM = 50  # features of a request
RELEASE = {"release": "2020-01"}


def bundle(folder: Path) -> bytes:
    """Return the program with the SDK, as one script; it and its styles are written into a folder."""
    esbuild = needed(
        FOLDER.parent / "node_modules" / ".bin" / "esbuild", "ArcGIS is not installed: `make test-tools` does it"
    )
    options = ("--bundle", "--format=esm", "--log-level=warning", f"--outdir={folder}")
    subprocess.run([esbuild, "layer.js", *options], cwd=FOLDER, timeout=PATIENCE, check=True)
    return (folder / "layer.js").read_bytes()


async def test_arcgis_reads_every_feature_by_index(live_server: str, browser: Browser, tmp_path: Path) -> None:
    page_of = {
        "/": Response(b"<!doctype html><meta charset=utf-8><script type=module src=layer.js></script>"),
        "/layer.js": Response(await asyncio.to_thread(bundle, tmp_path), headers={"Content-Type": "text/javascript"}),
    }
    asked: list[str] = []
    with http_server(at_paths(page_of)) as origin:
        page = await browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(origin)
        await page.wait_for_function("() => 'readAll' in window")
        for collection in ("estados", "municipios", "localidades"):
            names = await page.evaluate("given => readAll(...given)", [f"{live_server}/ogc/", collection, NUM, RELEASE])
            listed = json.loads(ask(live_server, f"/ogc/collections/{collection}/items?limit=1000").body)
            assert names == [one["properties"]["nombre"] for one in listed["features"]]
        await page.close()
    read = [url for url in asked if url.startswith(live_server)]
    assert all("release=2020-01" in url for url in read)
    indexes = [parse_qs(urlsplit(url).query).get("startindex") for url in read if "localidades/items" in url]
    assert indexes == [None, None, ["50"], ["100"]]  # the first is a sample of the columns
