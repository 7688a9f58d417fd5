"""Runs Debian's Chromium, checks pages for errors, and runs axe and the Nu HTML Checker of the W3C on them."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Route,
    ViewportSize,
    async_playwright,
    expect,
)

from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")  # drawn by the processor
SCREENSHOTS = ROOT / "build" / "screenshots"
TELEPHONE: ViewportSize = {"width": 360, "height": 740}
TOUCH: dict[str, Any] = {"viewport": TELEPHONE, "has_touch": True, "is_mobile": True}

_PATIENCE_MS = PATIENCE * 1000  # a busy machine may take long to draw a page, or a map without a graphics card
_AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"

expect.set_options(timeout=_PATIENCE_MS)


def chromium() -> str:
    """Return the path of Debian's Chromium, preferably its headless shell, which takes half the time."""
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    return needed(found, "there is no chromium-headless-shell on this machine, and no chromium")


@asynccontextmanager
async def launched(*arguments: str) -> AsyncIterator[Browser]:
    """Start Debian's Chromium; Playwright's own is never downloaded."""
    program = chromium()  # first, because Playwright's driver needs libatomic1, which Debian installs with Chromium
    async with async_playwright() as playwright:
        # Root can't have Chromium's sandbox.
        browser = await playwright.chromium.launch(
            executable_path=program, args=arguments, chromium_sandbox=os.geteuid() != 0
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def watched(
    browser: Browser,
    base: str,
    *,
    errors: bool = False,
    service: str | None = None,
    **options: Any,  # noqa: ANN401  # passed on
) -> AsyncIterator[BrowserContext]:
    """Open a context; fail at the end if a page of it wrote to the console or sent a request elsewhere.

    With `errors`, the console may report responses with an error status. `service` is another origin for requests.
    """
    context = await browser.new_context(**{"base_url": base, "locale": "en-US", **options})
    wrong: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if not (errors and message.text.startswith("Failed to load resource")):
            wrong.append(f"{message.type}: {message.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith((f"{base}/", f"blob:{base}/", f"{service or base}/")):
            wrong.append(f"asked for {request.url}")

    context.on("console", on_console)
    context.on("weberror", lambda error: wrong.append(str(error.error)))
    context.on("request", on_request)
    context.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    context.set_default_timeout(_PATIENCE_MS)
    try:
        yield context
    finally:
        await context.close()
    assert wrong == [], wrong


@asynccontextmanager
async def visit(browser: Browser, base: str, **options: Any) -> AsyncIterator[Page]:  # noqa: ANN401  # passed on
    """Open a page in a context of its own, which is `watched`."""
    async with watched(browser, base, **options) as context:
        yield await context.new_page()


class Held:
    """Requests that are held until `release` is called."""

    def __init__(self) -> None:
        self._asked = asyncio.Semaphore(0)
        self._released = asyncio.Event()

    async def __call__(self, route: Route) -> None:
        self._asked.release()
        await self._released.wait()
        await route.continue_()

    async def asked(self) -> None:
        await self._asked.acquire()

    def release(self) -> None:
        self._released.set()


async def hold(page: Page, address: str | re.Pattern[str]) -> Held:
    """Hold the requests for a URL, which may have wildcards or be a pattern."""
    held = Held()
    await page.route(address, held)
    return held


async def axe_faults(page: Page, **options: object) -> dict[str, list[str]]:
    """Return the violations that axe finds: rules, and the elements that break them."""
    if not await page.evaluate("() => 'axe' in window"):
        # Evaluated, because the pages' security policy blocks injected scripts.
        path = needed(_AXE, "axe-core is not installed: `make test` does it, with npm")
        await page.evaluate(await asyncio.to_thread(Path(path).read_text, "utf-8"))
    options = {"resultTypes": ["violations"], "preload": False, **options}
    report = await page.evaluate("options => axe.run(options)", options)
    assert report["passes"]
    return {fault["id"]: [node["html"] for node in fault["nodes"]] for fault in report["violations"]}


def errors_in(folder: Path, *accepted: str) -> list[str]:
    """Return what the Nu HTML Checker finds in the files below a folder, except what matches a pattern."""
    java = needed(shutil.which("java"), "the Nu HTML Checker needs Java")
    jar = ROOT / "tests" / "validator" / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
    program = [java, "-jar", needed(jar, "vnu-jar is not installed: `make tail` does it, with npm")]
    options = ["--stdout", "--exit-zero-always", "--format", "json", "--skip-non-html"]
    checked = subprocess.run([*program, *options, str(folder)], capture_output=True, timeout=PATIENCE, check=True)
    messages: list[dict[str, Any]] = json.loads(checked.stdout)["messages"]
    return [
        f"{message['url'].partition(f'{folder}/')[2]}: {message['message']} {message.get('extract', '')}"
        for message in messages
        if message["type"] != "info" and not any(re.match(pattern, message["message"]) for pattern in accepted)
    ]


async def forget(page: Page, base: str) -> None:
    """Delete the work that the browser has kept."""
    browser = await page.context.new_cdp_session(page)
    await browser.send("Storage.clearDataForOrigin", {"origin": base, "storageTypes": "indexeddb"})
    await browser.detach()


async def kept(page: Page) -> None:
    """Wait until the browser lets people leave without asking, because it has kept what was decided."""
    await page.wait_for_function("""() => window.dispatchEvent(new Event("beforeunload", { cancelable: true }))""")
