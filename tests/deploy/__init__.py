"""Everything shipped with the service: manifests, proxies, documentation, packages."""
