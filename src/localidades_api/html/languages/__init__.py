"""Translations, and the words for the codes of a match."""
