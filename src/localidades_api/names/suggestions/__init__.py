"""Suggests places and areas for a text, and finds those of a search."""
