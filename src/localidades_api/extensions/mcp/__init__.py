"""The tools of assistants (docs/guides/assistants.md), which only the command `mcp` imports: they need an extra."""

from fastapi import APIRouter

from localidades_api.api.extension import Extension

EXTENSION = Extension(
    APIRouter(),
    summary="- `localidades-api mcp` is a server of the Model Context Protocol with these look-ups as tools",
)
