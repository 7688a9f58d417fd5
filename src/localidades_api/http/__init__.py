"""HTTP without routes: content negotiation, caching, headers, paths, request bodies, transfers and vector tiles."""
