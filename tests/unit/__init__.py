"""Tests that need neither Postgres nor a server."""
