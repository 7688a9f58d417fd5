"""The list: serializer, paginator, view."""

from typing import ClassVar

from rest_framework import generics, serializers
from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response

from benchmarks.peers.drf.models import Locality


class LocalitySerializer(serializers.ModelSerializer):
    """A locality on the wire."""

    class Meta:
        """Model and fields."""

        model = Locality
        fields: ClassVar = ["id", "municipio_id", "clave", "nombre"]


class LocalityPagination(PageNumberPagination):
    """Pages of 50, in the service's envelope."""

    page_size = 50

    def get_paginated_response(self, data: object) -> Response:
        """Wrap a page."""
        paginator = self.page.paginator
        return Response({"quantity": paginator.count, "total_pages": paginator.num_pages, "results": data})


class LocalityList(generics.ListAPIView):
    """The list of localities."""

    queryset = Locality.objects.all()
    serializer_class = LocalitySerializer
    pagination_class = LocalityPagination
