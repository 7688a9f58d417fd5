"""Errors as answers show them (RFC 9457)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field


class Fault(BaseModel):
    """A parameter that can't be used."""

    parameter: Annotated[str, Field(examples=["page"])]
    message: Annotated[str, Field(examples=["Digits 0 to 9 only."])]


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: Annotated[
        str,
        Field(
            description="Which kind of problem this is: an address, relative to this one, of a page about it.",
            examples=["/problems#not-found"],
        ),
    ]
    title: Annotated[str, Field(description="The kind in words.", examples=["Not Found"])]
    status: Annotated[int, Field(description="The HTTP status.", examples=[404])]
    detail: Annotated[str, Field(description="What was wrong with this request, and what to do.")]


class InvalidPageProblem(Problem):
    """A page past the last, or a release that there is not."""

    total_pages: Annotated[int | None, Field(description="Pages there are, where a page was asked for.")] = None


class GoneProblem(Problem):
    """A key that an earlier release had."""

    last_release: Annotated[str, Field(description="The last release that knew the key.")]
    successor: Annotated[
        int | None,
        Field(description="The key of the one locality that has the same name at the same point now, if there is one."),
    ] = None


class InvalidParametersProblem(Problem):
    """Parameters that can't be used."""

    errors: Annotated[Sequence[Fault], Field(description="Each parameter that is wrong, and why.")]


class NotAcceptableProblem(Problem):
    """No representation that the Accept header allows."""

    available: Annotated[Sequence[str], Field(description="The media types there are.")]
