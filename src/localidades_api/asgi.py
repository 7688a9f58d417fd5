"""The service as an ASGI application, for any server: `uvicorn localidades_api.asgi:app`."""

from localidades_api.app import create_app

app = create_app()
