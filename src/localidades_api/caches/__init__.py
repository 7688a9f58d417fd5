"""In-memory caches of the served release: its pages, and the positions that filters select."""
