"""Faults of Postgres on real servers: `make faults`, not `make test`."""
