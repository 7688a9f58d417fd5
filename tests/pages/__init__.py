"""Pages for people: HTML, languages, and what a browser makes of them."""
