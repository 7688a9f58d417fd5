"""The files of an index: written, and read through memory maps."""
