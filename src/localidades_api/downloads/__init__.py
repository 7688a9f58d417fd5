"""Downloads of a release: file types, a module for each binary format, and the response that sends a file."""
