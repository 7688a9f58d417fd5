"""What is held in memory of the release that is served."""
