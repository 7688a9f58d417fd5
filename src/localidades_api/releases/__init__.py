"""The life of a release: publication, tracking, comparison, retirement."""
