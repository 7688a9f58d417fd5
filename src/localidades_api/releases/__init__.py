"""The life of a release: published, followed, compared, retired."""
