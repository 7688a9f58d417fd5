"""Proposes the places that a row may mean, and aligns them with it word by word."""
