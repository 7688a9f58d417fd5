"""HTTP without routes: content negotiation, caching, headers, paths, bodies and long transfers."""
