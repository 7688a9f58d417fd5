"""The capital of the country, an estado that is one city."""

CIUDAD_DE_MEXICO = 9  # an estado that is one city, whose alcaldías have a locality each
CAPITAL = "Ciudad de México"  # its name, also while the estado was called Distrito Federal
