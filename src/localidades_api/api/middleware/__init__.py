"""The middleware of the application; `app.py` puts it in order."""
