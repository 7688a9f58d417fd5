"""INEGI's catalogue of the localities of Mexico as a fast, read-only HTTP service."""

__version__ = "0.1.0"
