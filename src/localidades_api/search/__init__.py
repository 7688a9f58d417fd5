"""From a name as people type it to its key: suggestions, and the matching of rows (decision 0022).

An index is a folder that `build_index` writes and `NameIndex` reads. It holds all that an answer needs, so nothing here
asks the database.
"""
