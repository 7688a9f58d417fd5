"""In-memory caches: the pages of the served release, positions that filters select, changes of releases, and tiles."""
