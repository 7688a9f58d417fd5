"""npm packages: axe for the tests, and scripts that the pages of the map take over."""
