"""The tables of `localities`, one for each release."""


def partition_of(release_id: int) -> str:
    """Name the table that holds the localities of a release."""
    return f"localities_r{release_id}"
