"""Finds keys by names as people type them: suggestions, searches, and the matching of rows (docs/decisions/names.md).

An index is a folder that `build_index` writes and `NameIndex` reads. It holds everything that an answer needs, so
nothing here queries the database.
"""
