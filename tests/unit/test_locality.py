"""The columns of a locality are declared once, and the answers show each of them."""

from types import NoneType
from typing import get_args

from localidades_api.domain.locality import ATTRIBUTES, POINT, LocalityRow
from localidades_api.domain.schemas import LocalityRecord
from localidades_api.downloads.descriptions import MEANINGS
from localidades_api.router.reconcile.vocabulary import PROPERTIES
from localidades_api.storage.models import localities
from localidades_api.storage.repository.exports import COLUMNS


def test_record_on_the_wire_has_every_column_of_a_row_and_the_key_as_text() -> None:
    assert set(LocalityRecord.model_fields) == {*LocalityRow._fields, "cvegeo"}
    assert list(LocalityRecord.model_fields)[-len(ATTRIBUTES) :] == list(ATTRIBUTES)


def test_attributes_are_what_a_record_may_lack() -> None:
    optional = {name for name, field in LocalityRecord.model_fields.items() if NoneType in get_args(field.annotation)}
    assert optional == set(ATTRIBUTES)
    assert optional == {column.name for column in localities.columns if column.nullable}
    assert set(POINT) <= optional


def test_download_has_every_column_of_a_row() -> None:
    assert set(LocalityRow._fields) <= set(COLUMNS) <= set(MEANINGS)


def test_property_of_reconciliation_describes_every_column_of_a_record() -> None:
    assert set(LocalityRecord.model_fields) <= set(PROPERTIES)
    assert all(PROPERTIES[name].description for name in ATTRIBUTES)
