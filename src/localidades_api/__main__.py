"""`python -m localidades_api` is the command `localidades-api`."""

from localidades_api.cli import app

app()
