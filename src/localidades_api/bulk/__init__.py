"""Reads rows and writes answers in order, for files of any length, in little memory.

Readers and writers do no I/O of their own: an endpoint or a command feeds them bytes, and sends or writes what they
return. They are the same for rows to match and for points, which differ only in their columns.
"""
