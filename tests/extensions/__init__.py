"""The extensions, over ASGI and with the programs that they are for."""
