"""The one route."""

from django.urls import path

from benchmarks.peers.drf.views import LocalityList

urlpatterns = [path("api/census/localidades/", LocalityList.as_view())]
