"""The page that the `type` of every problem leads to: what each type means, and what to do."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import RepresentationQuery
from localidades_api.api.problems import PROBLEMS, problem_type
from localidades_api.api.strict import STRICT
from localidades_api.errors import CommandError, LocalidadesError
from localidades_api.html.i18n import preferred_language
from localidades_api.html.renderer import View, root_of, select_renderer

router = APIRouter(route_class=DirectRoute)


def answerable() -> list[type[LocalidadesError]]:
    """Return the types of errors that a response can carry, sorted by status."""
    return sorted(_descendants(LocalidadesError), key=lambda error: error.status)


def _descendants(error: type[LocalidadesError]) -> Iterator[type[LocalidadesError]]:
    if error is not CommandError:
        yield error
        for child in error.__subclasses__():
            yield from _descendants(child)


@router.get(PROBLEMS, include_in_schema=False, dependencies=STRICT)
async def list_problem_types(request: Request, query: Annotated[RepresentationQuery, Query()]) -> Response:
    """List the types of problems, as an HTML page or JSON."""
    renderer = select_renderer(query.format, request.headers)
    root = root_of(request.scope)
    described = [
        {
            "type": problem_type(error, root),
            "title": error.title,
            "status": int(error.status),
            "meaning": error.meaning,
            "remedy": error.remedy,
        }
        for error in answerable()
    ]
    view = View(
        "problems.html",
        "Problems",
        {"results": described},
        root=root,
        target=f"{root}{PROBLEMS}?format=json",
        language=query.lang or preferred_language(request.headers),
        query={name: value for name, value in request.query_params.items() if name == "lang"},
    )
    vary = "Accept, Accept-Language" if renderer.format == "api" else "Accept"
    return Response(renderer.render(view), headers={"Vary": vary, **renderer.headers})
