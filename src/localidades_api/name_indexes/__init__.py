"""The indexes of names on this machine: opened, built and removed."""
