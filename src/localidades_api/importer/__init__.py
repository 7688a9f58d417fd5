"""A catalogue's way in: `source` opens its file, then come `extract`, `transform` and `load`; `run` is the import."""
