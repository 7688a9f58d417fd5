"""Django REST Framework: the stack of the service that was observed."""
