"""Opens, builds and removes the indexes of names on this machine."""
