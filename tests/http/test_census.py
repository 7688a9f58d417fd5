"""The headers of every response below /api/census, wherever it comes from."""

import httpx
import pytest
from fastapi import FastAPI

from tests.support.pages import BROWSER
from tests.support.wire import LOCALIDADES

MATCH, NEAREST = f"{LOCALIDADES}match/", f"{LOCALIDADES}nearest/"
WITH_BODY = "POST, OPTIONS"
ANSWERS = [
    ("GET", LOCALIDADES, 200, "GET"), ("HEAD", LOCALIDADES, 200, "GET"), ("OPTIONS", LOCALIDADES, 204, "GET"),
    ("PUT", LOCALIDADES, 405, "GET"), ("GET", LOCALIDADES[:-1], 308, "GET"),
    ("GET", f"{LOCALIDADES}?page=0", 422, "GET"), ("GET", f"{LOCALIDADES}?page_size=1000&format=api", 307, "GET"),
    ("GET", f"{LOCALIDADES}999999999/", 404, "GET"), ("GET", f"{LOCALIDADES}10010001/%0A", 404, "GET"),
    ("GET", "/api/census/nothing", 404, "GET"), ("PUT", "/api/census/nothing", 405, "GET"),
    ("GET", "/api/census", 308, "GET"),
    ("GET", MATCH, 405, WITH_BODY), ("HEAD", MATCH, 405, WITH_BODY), ("GET", MATCH[:-1], 405, WITH_BODY),
    ("POST", MATCH, 415, WITH_BODY), ("POST", MATCH[:-1], 415, WITH_BODY),
    ("PUT", NEAREST, 405, "GET, POST, OPTIONS"), ("OPTIONS", NEAREST, 204, "GET, POST, OPTIONS"),
]  # fmt: skip


@pytest.mark.parametrize("root", ["", "/claves"])
@pytest.mark.parametrize(("method", "target", "status", "allow"), ANSWERS)
async def test_every_response_has_allow_and_vary(
    app: FastAPI, root: str, method: str, target: str, status: int, allow: str
) -> None:
    """Also below a path prefix that the proxy keeps."""
    transport = httpx.ASGITransport(app, root_path=root)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for accept in ({}, BROWSER):
            answer = await client.request(method, f"{root}{target}", headers=accept)
            assert answer.status_code == status
            assert answer.headers["allow"] == allow
            assert answer.headers["vary"].startswith("Accept")
            assert answer.headers["access-control-allow-origin"] == "*"
