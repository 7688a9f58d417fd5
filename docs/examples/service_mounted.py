"""The service below a path of another application."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from localidades_api.app import create_app
from localidades_api.settings import read_settings

service = create_app(read_settings())


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
    """Start the service with the application: FastAPI doesn't do so for what is mounted."""
    async with service.router.lifespan_context(service) as state:
        yield state or {}


app = FastAPI(lifespan=lifespan)
app.mount("/geo", service)
