"""The table, which Django does not manage."""

from typing import ClassVar

from django.db import models


class Locality(models.Model):
    """A locality."""

    id = models.IntegerField(primary_key=True)
    municipio_id = models.IntegerField()
    clave = models.TextField()
    nombre = models.TextField()

    class Meta:
        """Table and order."""

        managed = False
        db_table = "localities"
        ordering: ClassVar = ["clave", "id"]

    def __str__(self) -> str:
        return str(self.nombre)
