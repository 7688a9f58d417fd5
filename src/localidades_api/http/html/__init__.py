"""Pages for browsers: templates, translations, drawings, static files."""
