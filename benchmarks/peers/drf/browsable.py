"""Django's settings for the browsable page: those of the API, with templates and the page's style and scripts."""

from benchmarks.peers.drf import settings

SECRET_KEY = settings.SECRET_KEY
ALLOWED_HOSTS = settings.ALLOWED_HOSTS
INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.staticfiles"]
MIDDLEWARE = settings.MIDDLEWARE
ROOT_URLCONF = settings.ROOT_URLCONF
DATABASES = settings.DATABASES
REST_FRAMEWORK = settings.REST_FRAMEWORK
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
STATIC_URL = "/static/"
