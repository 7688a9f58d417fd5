"""Rows in and answers out, without a database: readers, writers, matching row by row."""
