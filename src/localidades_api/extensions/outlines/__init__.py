"""Outlines of municipios, and the municipio of a point (docs/guides/outlines.md)."""
