"""HTML pages: templates, SVG drawings and static files."""
