"""Downloads of a release: file types, a module for each family of formats, and the transfer that sends them."""
