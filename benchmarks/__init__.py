"""Measurements that anyone can repeat: ratios in one run, never absolute times."""
