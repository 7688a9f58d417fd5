"""INEGI's file without a server: its answers beside those of a service, and its index."""
