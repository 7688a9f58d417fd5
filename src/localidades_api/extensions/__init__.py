"""The catalogue by other standards: a folder each, which only `app` and `cli` import."""
