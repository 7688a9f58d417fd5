"""The table of reasons: why a word, an area, a key or a point of a row is not that of a place.

A reason has one line, whichever stage asks: the alignment, the order of candidates, the evidence, the decision, and the
answer (docs/decisions/certainty.md).
"""

# ruff: noqa: E501  # a line of the table is a row

from enum import StrEnum
from typing import NamedTuple, Self


class Reason(StrEnum):
    """A reason why a row and a place differ.

    `code` is its name in answers, which several reasons may share; `penalty` orders candidates, in points of a hundred,
    and is a minimum where the reason also has degrees; `evidence` names what it says about the probability of a place
    (`coefficients.tsv`). Its marks:

    - `doubt`: another place may be meant, whatever else agrees, so the row is never certain;
    - `read`: no difference once abbreviations and numbers are read;
    - `light`: the same words;
    - `extra`: the given word is not one of the place's;
    - `row`: about the areas, the key or the point of the row, not about names.
    """

    code: str
    penalty: float
    evidence: str
    marks: frozenset[str]

    def __new__(cls, value: str, code: str, penalty: float, evidence: str = "", marks: str = "") -> Self:
        """Read a line of the table."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.code, member.penalty, member.evidence = code, penalty, evidence
        member.marks = frozenset(marks.split())
        return member

    @property
    def is_doubt(self) -> bool:
        """Whether a row with this difference is never certain."""
        return "doubt" in self.marks

    @property
    def is_doubt_of_key(self) -> bool:
        """The same, of the place with the key of the row: its name may have other words, but not be another name."""
        return self is Reason.NAME or (self.is_doubt and not self.is_of_name)

    @property
    def is_of_name(self) -> bool:
        """Whether the difference is one of names."""
        return "row" not in self.marks

    # fmt: off
    # reason                            code        penalty  evidence                   marks
    # The same name, written differently
    WORDING = "wording",                "wording",      1.0, "",                        "read light"
    SECTION = "section",                "kind",         0.5, "",                        "read extra"  # Sección, beside a number
    ARTICLE = "article",                "article",      2.0, "article",                 "light"
    ORDER = "order",                    "order",        1.0, "order",                   "light"
    SPACING = "spacing",                "spacing",      1.0, "",                        "light"
    SPELLING = "spelling",              "spelling",     1.0, "spelling",                "extra"  # a word with other letters
    LETTERS = "letters",                "spelling",     1.0, "letters"                          # the whole name
    ABBREVIATION = "abbreviation",      "wording",      4.0, "abbreviation",            "extra"  # as a period or its vowels show
    BEGINNING = "beginning",            "wording",     10.0, "abbreviation",            "extra"  # only the letters tell

    # Kinds of places
    KIND_ADDED = "kind_added",          "kind",         2.5, "kind_added_other",        "extra"
    KIND_MISSING = "kind_missing",      "kind",         2.5, "kind_missing_other"
    SETTLEMENT_ADDED = "settlement_added", "kind",      1.5, "kind_added_settlement",   "extra"  # Pueblo, Villa, Ciudad
    SETTLEMENT_MISSING = "settlement_missing", "kind",  1.5, "kind_missing_settlement"
    FARM_ADDED = "farm_added",          "kind",         4.0, "kind_added_farm",         "extra"  # Rancho, Finca, Quinta
    FARM_MISSING = "farm_missing",      "kind",         4.0, "kind_missing_farm"
    LAND_ADDED = "land_added",          "kind",         2.5, "kind_added_land",         "extra doubt"  # Ejido, Predio, Familia
    LAND_MISSING = "land_missing",      "kind",         2.5, "kind_missing_land"
    BUSINESS_ADDED = "business_added",  "kind",         4.0, "kind_added_business",     "extra doubt"  # Granja, Hotel
    BUSINESS_MISSING = "business_missing", "kind",      4.0, "kind_missing_business"
    LANDMARK_ADDED = "landmark_added",  "kind",         6.0, "kind_added_landmark",     "extra doubt"  # Playa, Estación
    LANDMARK_MISSING = "landmark_missing", "kind",      6.0, "kind_missing_landmark"

    # Numbers, contrasts and other words
    NUMBER_ADDED = "number_added",      "number",      18.0, "number_added",            "extra doubt"
    NUMBER_MISSING = "number_missing",  "number",      14.0, "number_missing",          "doubt"
    FIRST_NUMBER_MISSING = "first_number_missing", "number", 11.0, "number_missing",    "doubt"  # the number 1
    NUMBER_OTHER = "number_other",      "number",      40.0, "number_other",            "extra doubt"
    CONTRAST_ADDED = "contrast_added",  "contrast",    16.0, "contrast_added",          "extra doubt"  # Alto, Norte, Nuevo
    CONTRAST_MISSING = "contrast_missing", "contrast", 16.0, "contrast_missing",        "doubt"
    CONTRAST_OTHER = "contrast_other",  "contrast",    35.0, "contrast_other",          "extra doubt"
    ADDED = "added",                    "added",        6.0, "added",                   "extra doubt"
    INITIAL_ADDED = "initial_added",    "added",        3.0, "added",                   "extra doubt"
    AREA_ADDED = "added_of_area",       "added",        1.0, "added_of_area",           "extra doubt"  # of its municipio or estado
    MISSING = "missing",                "missing",      6.0, "missing"
    INITIAL_MISSING = "initial_missing", "missing",     3.0, "missing"
    NAME = "name",                      "name",        50.0, "name"                              # an entirely different name

    # Other places of the name: nothing says which of them is meant
    HOMONYM = "homonym",                "homonym",      0.5, "",                        "row doubt"  # in the municipio
    SHORT_NAME = "short_name",          "homonym",      0.5, "",                        "row doubt"  # a town that people call so
    OTHER_PLACE = "other_place",        "homonym",      0.5, "",                        "row doubt"  # La Laguna - Los Achotes

    # Parts in brackets
    SECOND_NAME_LEFT_OUT = "second_name_left_out", "bracket", 2.0, "second_name_left_out"        # (El Zarco)
    BRACKET_LEFT_OUT = "bracket_left_out", "bracket",   2.0, "bracket_left_out"                  # [Ejido]
    ESTABLISHMENT_LEFT_OUT = "establishment_left_out", "bracket", 4.0, "establishment_left_out"              # [Rancho]
    BRACKET_ALONE = "bracket_alone",    "bracket",      6.0, "bracket_alone"                     # only the place's bracket was given
    BRACKET_ADDED = "bracket_added",    "bracket",      3.0, "bracket_added"
    ESTABLISHMENT_BRACKETED = "establishment_bracketed", "bracket", 3.0, "establishment_bracketed",    "doubt"  # added, in brackets
    QUALIFIER_BRACKETED = "qualifier_bracketed", "bracket", 3.0, "qualifier_bracketed", "doubt"  # a number or contrast, added
    BRACKET_ADDED_ALONE = "bracket_added_alone", "bracket", 8.0, "bracket_added_alone", "doubt"  # only the row's bracket fits

    # Other names of a place
    SEAT = "seat",                      "seat",         1.5, "seat"                              # a cabecera by the name of its municipio
    SEAT_WITH_NAMESAKE = "seat_with_namesake", "seat",  4.0, "seat_with_namesake"                # which another place has, too
    EVERYDAY = "everyday",              "everyday",     2.0, "everyday"                          # a name that people use and INEGI does not
    FORMER_NAME = "former_name",        "former_name",  3.0, "former_name"                       # much like that of an earlier release
    FORMER_NAME_LITERALLY = "former_name_literally", "former_name", 0.5, "former_name_literally"

    # The street or colonia behind which a place was found
    ADDRESS = "address",                "address",     10.0

    # Keys
    FORMER_KEY = "former_key",          "former_key",   2.0, "former_key",              "row"    # that of the place in an earlier release
    WITHDRAWN_KEY = "withdrawn_key",    "withdrawn_key", 6.0, "unknown_key",            "row doubt"
    UNKNOWN_KEY = "unknown_key",        "unknown_key",  6.0, "unknown_key",             "row"    # that no release has
    KEY = "key",                        "key",         30.0, "other_key",               "row doubt"  # that of another place

    # Areas, point and ambito
    MUNICIPIO_UNLIKE = "municipio_unlike", "municipio", 0.0, "",                        "row"    # written differently
    MUNICIPIO_ADDED = "municipio_added", "municipio",   6.0, "",                        "row doubt"  # with words that its name lacks
    MUNICIPIO_FORMER = "municipio_former", "municipio", 0.5, "",                        "row"    # in which the place was
    MUNICIPIO_LIKE_FORMER = "municipio_like_former", "municipio", 3.0, "",              "row"
    MUNICIPIO_UNKNOWN = "municipio_unknown", "municipio", 12.0, "municipio_unknown",    "row doubt"
    MUNICIPIO_OTHER = "municipio_other", "municipio",  22.0, "municipio_other",         "row doubt"
    ESTADO = "estado",                  "estado",      18.0, "estado_other",            "row doubt"
    ESTADO_UNLIKE = "estado_unlike",    "estado",       2.0, "",                        "row"
    DISTANCE = "distance",              "distance",     2.0, "",                        "row"    # kilometres from the point
    FAR = "far",                        "distance",     6.0, "",                        "row doubt"  # more than 5 of them
    POINT = "point",                    "point",        0.0, "",                        "row doubt"  # in another municipio, by the outlines
    AMBITO = "ambito",                  "ambito",       0.9, "ambito_other",            "row"
    # fmt: on


class Difference(NamedTuple):
    """A difference between a row and a place: why, the words of each, and a penalty in points."""

    reason: Reason
    given: str
    found: str
    penalty: float

    @property
    def code(self) -> str:
        """The name of the difference in answers."""
        return self.reason.code


def differ(reason: Reason, given: str, found: str = "", more: float = 0.0) -> Difference:
    """Return a difference; `more` is added to the penalty of its reason."""
    return Difference(reason, given, found, round(reason.penalty + more, 2))
