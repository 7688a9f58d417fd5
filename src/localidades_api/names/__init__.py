"""Finds keys by names as people type them: suggestions, and the matching of rows (docs/decisions/names.md).

An index is a folder that `build_index` writes and `NameIndex` reads. It holds all that an answer needs, so nothing here
asks the database.
"""
