"""Ignores the parameters that newsletters and social networks add to links, on HTML pages (docs/decisions/api.md)."""

import re

from starlette.types import Scope

from localidades_api.api.problems import ResponsePreferences

_TRACKING = re.compile(
    rb"(?:utm_[a-z_]+|fbclid|gclid|gclsrc|gbraid|wbraid|gad_source|gad_campaignid|dclid|_gl|_ga|msclkid|mc_cid|mc_eid"
    rb"|igsh|igshid|twclid|ttclid|li_fat_id|yclid|srsltid|mkt_tok|_hsenc|_hsmi|vero_id|oly_enc_id|oly_anon_id)(?:=.*)?",
    re.DOTALL,
)


def drop_tracking_parameters(scope: Scope) -> None:
    """Remove tracking parameters from the query of an HTML page; JSON refuses them as it does any unknown one."""
    parts = scope["query_string"].split(b"&")
    left = [part for part in parts if not _TRACKING.fullmatch(part)]
    if len(left) < len(parts) and ResponsePreferences.of(scope).renderer.format == "api":
        scope["query_string"] = b"&".join(left)
