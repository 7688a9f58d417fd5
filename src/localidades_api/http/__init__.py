"""HTTP without routes: negotiation, caching, errors as problems, headers, HTML."""
