"""Finds keys by names as people type them: suggestions, searches, and the matching of rows (docs/decisions/names.md).

An index is a folder that `build_index` writes and `NameIndex` reads. It holds everything that an answer needs, so
nothing here queries the database.

A row is read (`reading`), places are proposed from the files of the index (`files`) and aligned with it (`candidates`),
what speaks for each is weighed (`certainty`), and the first is certain or not (`matcher`). `suggestions` answers who is
still typing, and searches.
"""
