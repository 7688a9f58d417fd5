"""Cells of CSV that spreadsheets read as they are: a key isn't taken for a number, nor a name for a formula."""

# The start of a text that a spreadsheet would read as a formula; in Japanese, also with full-width signs.
_FORMULA = r"^([\u0001-\u0020\u00a0]*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n])"


def key_as_formula(sql: str) -> str:
    """Write a key as a formula of its text, which keeps its zeros."""
    return f'\'"=""\' || {sql} || \'"""\''


def text_without_formula(sql: str) -> str:
    """Write a text with an apostrophe before what would be a formula."""
    return f"""coalesce('"' || regexp_replace(replace({sql}, '"', '""'), '{_FORMULA}', '''\\1') || '"', '')"""
