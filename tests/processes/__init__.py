"""Real processes: servers on the wire, commands, workers, the embedded Postgres."""
