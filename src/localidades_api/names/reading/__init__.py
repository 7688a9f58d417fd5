"""Reads names, areas, addresses and whole lines as people write them."""
