"""Measurements that anyone can repeat. They compare figures of one run, never absolute times."""
