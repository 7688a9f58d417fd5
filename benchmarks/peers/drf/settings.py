"""Django's settings: a JSON API without users; connections are kept, as Django's documentation advises."""

import os

SECRET_KEY = "benchmark"  # noqa: S105  # nothing is signed
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["rest_framework", "benchmarks.peers.drf"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "benchmarks.peers.drf.urls"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "USER": os.environ["PGUSER"],
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "CONN_MAX_AGE": None,
    }
}
REST_FRAMEWORK: dict[str, object] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
}
