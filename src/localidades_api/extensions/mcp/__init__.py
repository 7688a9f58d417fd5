"""The tools of assistants (docs/guides/assistants.md), which only the command `mcp` imports: they need an extra."""
