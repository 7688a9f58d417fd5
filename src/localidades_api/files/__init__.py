"""Formats of files, read and written: archives, Excel workbooks, and file types recognized by their first bytes."""
