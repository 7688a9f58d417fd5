"""Tracking parameters, which pages leave out of their queries."""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.api.problems import ResponsePreferences

# Those that newsletters and social networks add to links (docs/decisions/api.md).
TRACKING = re.compile(
    rb"(?:utm_[a-z_]+|fbclid|gclid|gclsrc|gbraid|wbraid|gad_source|gad_campaignid|dclid|_gl|_ga|msclkid|mc_cid|mc_eid"
    rb"|igsh|igshid|twclid|ttclid|li_fat_id|yclid|srsltid|mkt_tok|_hsenc|_hsmi|vero_id|oly_enc_id|oly_anon_id)(?:=.*)?",
    re.DOTALL,
)


class TrackingParametersMiddleware:
    """Removes tracking parameters from the query of an HTML page; JSON refuses them as it does any unknown one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, without them."""
        if query := scope.get("query_string"):
            left = drop_tracking(query)
            if left != query and ResponsePreferences.of(scope).renderer.format == "api":
                scope["query_string"] = left
        await self.app(scope, receive, send)


def drop_tracking(query: bytes) -> bytes:
    """Return a query without its tracking parameters."""
    return b"&".join([part for part in query.split(b"&") if not TRACKING.fullmatch(part)])
