"""Files of a release: one module a format, and the transfer that sends them."""
