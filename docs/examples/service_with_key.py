"""The service for those who have a key."""

import os
import secrets
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import APIKeyHeader

from localidades_api.app import create_app
from localidades_api.settings import read_settings

KEY = os.environ["SERVICE_KEY"].encode()
OPEN = {"/livez", "/readyz", "/startupz", "/metrics"}

SentKey = Annotated[str | None, Security(APIKeyHeader(name="X-API-Key", auto_error=False))]


async def require_key(request: Request, key: SentKey) -> None:
    """Refuse a request without the key, unless it is a probe."""
    if request.url.path in OPEN:
        return
    if key is None or not secrets.compare_digest(key.encode(), KEY):
        challenge = {"WWW-Authenticate": "ApiKey"}
        raise HTTPException(401, "Send your key in the header X-API-Key.", headers=challenge)


app = create_app(read_settings(), dependencies=[Depends(require_key)])
