"""Reads rows and writes answers in order, in little memory however long the file is.

An endpoint or a command gives a reader a file, and sends or saves the bytes of a writer. They are the same for rows to
match and for points, which differ only in their columns.
"""
