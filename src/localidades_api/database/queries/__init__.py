"""Every SELECT of the service: the repository of the catalogue, and functions for what it does not hold."""
