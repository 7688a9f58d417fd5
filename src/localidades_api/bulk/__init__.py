"""Reads rows and writes answers in order, for files of any length, in little memory.

An endpoint or a command gives a reader a file, and sends or writes what a writer returns. They are the same for rows to
match and for points, which differ only in their columns.
"""
