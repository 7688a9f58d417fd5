"""Ignores the parameters that newsletters and social networks add to links, on HTML pages (decision 0034)."""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.http.problems import Wanted

_TRACKING = re.compile(
    rb"(?:utm_[a-z_]+|fbclid|gclid|gclsrc|gbraid|wbraid|gad_source|gad_campaignid|dclid|_gl|_ga|msclkid|mc_cid|mc_eid"
    rb"|igsh|igshid|twclid|ttclid|li_fat_id|yclid|srsltid|mkt_tok|_hsenc|_hsmi|vero_id|oly_enc_id|oly_anon_id)(?:=.*)?",
    re.DOTALL,
)


class TrackingParameters:
    """Removes tracking parameters from the query of an HTML page; JSON refuses them as it does any unknown one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with the query that is left."""
        if scope["type"] == "http" and scope["query_string"]:
            parts = scope["query_string"].split(b"&")
            left = [part for part in parts if not _TRACKING.fullmatch(part)]
            if len(left) < len(parts) and Wanted.of(scope).renderer.format == "api":
                scope["query_string"] = b"&".join(left)
        await self._app(scope, receive, send)
