"""Downloads of a release: Parquet, the text formats, and the transfer that sends them."""
