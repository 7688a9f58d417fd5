"""Postgres: connections, tables, roles, errors, and the queries of the service."""
