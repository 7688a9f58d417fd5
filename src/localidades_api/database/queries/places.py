"""SQL for a place in a list of places, with its municipio and estado."""

from localidades_api.catalogue.keys import KEYS_OF_A_STATE

# Homonyms of a municipio share their folded name, and two pairs of municipios of Oaxaca share theirs.
PLACE = f"""
    l.id, l.municipio_id, l.clave, l.nombre, l.poblacion, l.latitud, l.longitud,
    m.nombre AS municipio, m.clave AS municipio_clave, s.nombre AS estado,
    EXISTS (SELECT FROM localities AS o WHERE o.release_id = l.release_id AND o.folded = l.folded
               AND o.municipio_id = l.municipio_id AND o.id <> l.id) AS has_homonym,
    EXISTS (SELECT FROM municipalities AS o WHERE o.release_id = m.release_id AND o.nombre = m.nombre AND o.id <> m.id
               AND o.id >= m.estado_id * {KEYS_OF_A_STATE} AND o.id < (m.estado_id + 1) * {KEYS_OF_A_STATE})
    AS municipio_has_homonym
"""
PARENTS = """
    JOIN municipalities AS m ON m.release_id = l.release_id AND m.id = l.municipio_id
    JOIN states AS s ON s.release_id = m.release_id AND s.id = m.estado_id
"""


def has_localities(release_id: str) -> str:
    """Write the condition that a release, given by a parameter, still has its rows.

    A statement that also reads municipios, or another release, needs this to return no rows once the release's are
    removed, so that `Database.fetch_from` checks again.
    """
    return f"EXISTS (SELECT FROM localities WHERE release_id = {release_id})"
