"""Headers that stop browsers from guessing content types and running foreign scripts, outside the API.

The API's own responses have them already (`http.html.renderer`).
"""

import base64
import hashlib
import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.paths import PREFIX

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
# Swagger UI and ReDoc insert inline styles, and ReDoc runs its search in a worker made from a blob.
_OF_DOCUMENTATION = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class SecurityHeaders:
    """Adds `X-Content-Type-Options`, and to HTML `Content-Security-Policy` and `Referrer-Policy`, if missing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add the missing headers."""
        if scope["type"] != "http" or f"{scope['path']}/".startswith(f"{PREFIX}/"):
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _SecuredSend(send))


class _SecuredSend:
    """The `send` of one request. An HTML head waits for the body: its policy has the hashes of the inline scripts."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._head: Message | None = None

    async def __call__(self, message: Message) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            if headers.get("content-type", "").startswith("text/html") and "content-security-policy" not in headers:
                headers.setdefault("Referrer-Policy", "no-referrer")
                self._head = message
                return
        elif self._head:
            digests = (hashlib.sha256(script).digest() for script in _INLINE.findall(message["body"]))
            scripts = "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
            MutableHeaders(scope=self._head)["Content-Security-Policy"] = _OF_DOCUMENTATION.format(scripts=scripts)
            await self._send(self._head)
            self._head = None
        await self._send(message)
