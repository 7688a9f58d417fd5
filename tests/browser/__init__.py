"""npm packages: axe for the tests, and the vendored scripts of the map."""
