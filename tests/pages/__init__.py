"""HTML pages, their languages, and their behaviour in a browser."""
