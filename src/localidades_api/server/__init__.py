"""The HTTP server: processes, sockets, and uvicorn's HTTP/1.1 protocol with limits and timeouts."""
