"""HTML pages: templates, translations, SVG drawings and static files."""
