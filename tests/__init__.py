"""The tests: real Postgres, real server, real files."""
