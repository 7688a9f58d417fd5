"""Errors as answers show them (RFC 9457)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field


class Fault(BaseModel):
    """An invalid parameter."""

    parameter: Annotated[str, Field(examples=["page"])]
    message: Annotated[str, Field(examples=["Digits 0 to 9 only."])]


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: Annotated[
        str,
        Field(
            description="The kind of problem, as the relative address of a page that explains it.",
            examples=["/problems#not-found"],
        ),
    ]
    title: Annotated[str, Field(description="The kind of problem in words.", examples=["Not Found"])]
    status: Annotated[int, Field(description="The HTTP status.", examples=[404])]
    detail: Annotated[str, Field(description="What was wrong with this request, and what to do.")]


class InvalidPageProblem(Problem):
    """A page past the last one, or a release that does not exist."""

    total_pages: Annotated[int | None, Field(description="Pages in the list, if the page is past the last one.")] = None


class GoneProblem(Problem):
    """A key that an earlier release had and this one does not."""

    last_release: Annotated[str, Field(description="The last release that had the key.")]
    successor: Annotated[
        int | None,
        Field(description="The key of the one locality that now has the same name at the same point, if there is one."),
    ] = None


class InvalidParametersProblem(Problem):
    """Invalid parameters."""

    errors: Annotated[Sequence[Fault], Field(description="Each invalid parameter, and what is wrong with it.")]


class NotAcceptableProblem(Problem):
    """No representation that the Accept header allows."""

    available: Annotated[Sequence[str], Field(description="The media types that the resource has.")]
