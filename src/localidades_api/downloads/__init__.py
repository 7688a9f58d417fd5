"""Downloads of a release: file types, a module for each family of formats, and the response that sends them."""
