"""Postgres: connections, tables, and every SELECT of the service."""
