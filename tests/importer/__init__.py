"""Files, imports and migrations."""
