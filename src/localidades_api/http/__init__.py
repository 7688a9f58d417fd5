"""HTTP apart from routes: content negotiation, caching, problem documents, headers and HTML pages."""
