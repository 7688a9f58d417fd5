"""The tools of assistants (docs/guides/assistants.md)."""
