"""Hashes of records, for readers that share no package with this project: a whole catalogue compared line by line."""

import hashlib
import json
from collections.abc import Mapping


def hash_record(record: Mapping[str, object]) -> str:
    """Return the same for the same values, whether a reader has an integer as 7 or as 7.0, and whatever their order."""
    values = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in sorted(record.items())
    }
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
