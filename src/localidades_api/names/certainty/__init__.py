"""Weighs what speaks for each candidate: evidence and probabilities."""
