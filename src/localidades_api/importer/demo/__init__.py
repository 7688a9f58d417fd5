"""The bundled catalogue: invented places, generated."""
