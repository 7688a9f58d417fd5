"""The application, called through ASGI, on a Postgres."""
