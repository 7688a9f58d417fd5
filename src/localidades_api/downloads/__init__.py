"""Downloads of a release: types of files, a module for each way of writing one, and the transfer that sends them."""
