"""The columns of a locality that a query asks for."""

from typing import Annotated

from pydantic import Field

from localidades_api.catalogue.choices import several_of
from localidades_api.catalogue.schemas import LocalityRecord

FIELDS = tuple(LocalityRecord.model_fields)
_NAME = "|".join(FIELDS)

_Fields = Annotated[
    str,
    Field(
        max_length=2 * len(",".join(FIELDS)),
        description="Columns of the records, separated by commas, for JSON only. A record then has these members and no"
        f" others, each as in `LocalityDetail`, in this order: {', '.join(FIELDS)}.",
        examples=["cvegeo,nombre,poblacion"],
        json_schema_extra={"pattern": f"^({_NAME})(,({_NAME}))*$"},
    ),
    several_of(FIELDS),
]
FieldsParam = _Fields | None


def names_of(fields: str | None) -> list[str]:
    """Return the columns that were asked for; none if the query leaves them to the resource."""
    return fields.split(",") if fields else []
