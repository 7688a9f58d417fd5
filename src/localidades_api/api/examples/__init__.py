"""Recorded requests and answers: the examples of the OpenAPI document and of the API reference.

Those of a router are in its file, here or in `examples.json` of its extension, by operation id. They are answers of the
demo catalogue: `tests/http/test_examples.py` repeats the requests, and records what is missing.
"""

import json
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, TypeAdapter

_FOLDER = Path(__file__).parent
SERVICE = "http://127.0.0.1:8000"  # as `make run` starts it


class RecordedRequest(BaseModel):
    """A request: the parameters of its path and its query, and its body as JSON or the fields of a form."""

    parameters: Mapping[str, str | int | float] = {}
    media_type: str | None = None
    body: Any = None

    def target(self, path: str) -> str:
        """Return the target of the request; `path` is that of the operation, with names in braces."""
        query = {name: value for name, value in self.parameters.items() if f"{{{name}}}" not in path}
        return path.format(**self.parameters) + (f"?{urlencode(query, safe=',')}" if query else "")


class RecordedAnswer(BaseModel):
    """An answer: a body that is JSON or a short text, or the size in bytes of another."""

    status: int
    location: str | None = None
    media_type: str | None = None
    body: Any = None
    size: int | None = None

    @property
    def text(self) -> str:
        """The body as text, JSON with a member a line."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False, indent=1)


class Exchange(BaseModel):
    """A request, and the answer to it."""

    request: RecordedRequest
    answer: RecordedAnswer

    def curl(self, path: str) -> str:
        """Return the command that repeats the request; `path` is that of the operation."""
        request, words = self.request, ["curl", f"{SERVICE}{self.request.target(path)}"]
        if request.media_type == "application/json":
            words += ["-H", f"Content-Type: {request.media_type}", "-d", json.dumps(request.body, ensure_ascii=False)]
        elif request.media_type:
            words += [word for name, value in request.body.items() for word in ("--data-urlencode", f"{name}={value}")]
        return shlex.join([*words, "-O"] if self.answer.size else words)


EXCHANGES = TypeAdapter(dict[str, dict[str, Exchange]])


@cache
def read_examples() -> Mapping[str, Mapping[str, Exchange]]:
    """Return the examples by operation and name."""
    files = [*_FOLDER.glob("*.json"), *_FOLDER.parents[1].glob("extensions/*/examples.json")]
    return {id_: one for file in files for id_, one in EXCHANGES.validate_json(file.read_bytes()).items()}
