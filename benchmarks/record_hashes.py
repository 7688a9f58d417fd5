"""Hashes of records, for readers that share no package with this project."""

import hashlib
import json
from collections.abc import Mapping


def hash_record(record: Mapping[str, object]) -> str:
    """Return the hash of a record, the same for 7 and 7.0 and for any order of the values."""
    values = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in sorted(record.items())
    }
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
