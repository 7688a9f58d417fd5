"""The capitals of the estados, by the municipio that each is the cabecera of, under the names that people use."""

from collections.abc import Mapping

CIUDAD_DE_MEXICO = 9  # an estado that is one city, whose alcaldías have a locality each
CAPITAL = "Ciudad de México"  # its name, also while the estado was called Distrito Federal

CAPITALS: Mapping[int, str] = {
    1001: "Aguascalientes",
    2002: "Mexicali",
    3003: "La Paz",
    4002: "Campeche",
    5030: "Saltillo",
    6002: "Colima",
    7101: "Tuxtla Gutiérrez",
    8019: "Chihuahua",
    9015: CAPITAL,
    10005: "Durango",
    11015: "Guanajuato",
    12029: "Chilpancingo",
    13048: "Pachuca",
    14039: "Guadalajara",
    15106: "Toluca",
    16053: "Morelia",
    17007: "Cuernavaca",
    18017: "Tepic",
    19039: "Monterrey",
    20067: "Oaxaca",
    21114: "Puebla",
    22014: "Querétaro",
    23004: "Chetumal",
    24028: "San Luis Potosí",
    25006: "Culiacán",
    26030: "Hermosillo",
    27004: "Villahermosa",
    28041: "Ciudad Victoria",
    29033: "Tlaxcala",
    30087: "Xalapa",
    31050: "Mérida",
    32056: "Zacatecas",
}
