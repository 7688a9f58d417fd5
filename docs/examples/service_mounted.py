"""The service below a path of another application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from localidades_api.app import create_app
from localidades_api.settings import read_settings

service = create_app(read_settings())


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Start the service with the application: FastAPI doesn't do so for what is mounted."""
    async with service.router.lifespan_context(service):
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/geo", service)
