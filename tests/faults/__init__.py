"""Faults of Postgres, made on real servers: `make faults`, not `make test`."""
