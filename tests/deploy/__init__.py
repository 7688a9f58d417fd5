"""What is shipped around the service: manifests, proxies, documentation, packages."""
