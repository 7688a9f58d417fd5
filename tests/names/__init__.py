"""Tests of names and keys; the index of a made-up catalogue is all they need."""
