"""The kinds of difference between a row and a place, and a difference that was found."""

from enum import StrEnum
from typing import NamedTuple, Self


class Difference(StrEnum):
    """A kind of difference; answers show its `code`, which several kinds may share.

    `names.weights` has the penalty of each kind, and `coefficients.tsv` what it says about the probability of a place.
    """

    code: str

    def __new__(cls, value: str, code: str = "") -> Self:
        """Let a member have a code that is not its value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.code = code or value
        return member

    # The same name, written differently
    WORDING = "wording"  # an abbreviation, or a number in other characters
    ARTICLE = "article"  # an article added, missing or different
    ORDER = "order"  # the same words in another order
    SPACING = "spacing"  # the same letters with other spaces
    SPELLING = "spelling"  # a word with other letters
    LETTERS = "letters", "spelling"  # the whole name with other letters, and other spaces
    ABBREVIATION = "abbreviation", "wording"  # a word cut short, or only its initial

    # Words that only one of the names has, or that differ
    KIND_ADDED = "kind_added", "kind"  # a word for the kind of a place: Ejido, Rancho
    KIND_MISSING = "kind_missing", "kind"
    TITLE = "title", "kind"  # a title before the name of a municipio: Mpio. de, Heroica Ciudad de
    SECTION = "section", "kind"  # the word Sección, in one of two names with a number
    NUMBER_ADDED = "number_added", "number"
    NUMBER_MISSING = "number_missing", "number"
    FIRST_NUMBER_MISSING = "first_number_missing", "number"  # the number 1
    NUMBER_OTHER = "number_other", "number"
    CONTRAST_ADDED = "contrast_added", "contrast"  # a word that distinguishes two places: Alto, Norte, Nuevo
    CONTRAST_MISSING = "contrast_missing", "contrast"
    CONTRAST_OTHER = "contrast_other", "contrast"
    ADDED = "added"  # a word that the place's name does not have
    INITIAL_ADDED = "initial_added", "added"
    AREA_ADDED = "added_of_area", "added"  # a word of the municipio's or estado's name, behind the place's
    MISSING = "missing"  # a word of the place's name that was not given
    INITIAL_MISSING = "initial_missing", "missing"
    NAME = "name"  # an entirely different name

    ADDRESS = "address"  # a street, a number or a colonia, which were not used

    # Parts in brackets
    BRACKET_LEFT_OUT = "bracket_left_out", "bracket"
    BRACKET_ESTABLISHMENT_LEFT_OUT = "bracket_establishment_left_out", "bracket"  # a bracket such as [Rancho]
    BRACKET_ALONE = "bracket_alone", "bracket"  # only what is in the place's brackets was given
    BRACKET_ADDED = "bracket_added", "bracket"
    BRACKET_ESTABLISHMENT_ADDED = "bracket_establishment_added", "bracket"
    BRACKET_ADDED_ALONE = "bracket_added_alone", "bracket"  # only what is in the row's brackets is compared

    # Other names of a place
    SEAT = "seat"  # a cabecera under the name of its municipio
    SEAT_WITH_NAMESAKE = "seat_with_namesake", "seat"  # and another place of the municipio has that name
    EVERYDAY = "everyday"  # a name that people use and INEGI does not
    FORMER_NAME = "former_name"  # a name much like that of an earlier release
    FORMER_NAME_LITERALLY = "former_name_literally", "former_name"  # the name of an earlier release

    # Keys
    FORMER_KEY = "former_key"  # the key that the place had in an earlier release
    WITHDRAWN_KEY = "withdrawn_key"  # the key of a place that has been withdrawn
    UNKNOWN_KEY = "unknown_key"  # a key that no release has
    KEY = "key"  # the key of another place

    # Areas, point and ambito
    MUNICIPIO_UNLIKE = "municipio_unlike", "municipio"  # the place's municipio, written differently
    MUNICIPIO_ADDED = "municipio_added", "municipio"  # with words that its name lacks
    MUNICIPIO_FORMER = "municipio_former", "municipio"  # the municipio that the place was in
    MUNICIPIO_LIKE_FORMER = "municipio_like_former", "municipio"  # that municipio, written differently
    MUNICIPIO_UNKNOWN = "municipio_unknown", "municipio"  # no municipio has the name
    MUNICIPIO_OTHER = "municipio_other", "municipio"
    ESTADO = "estado"  # no estado has the name
    ESTADO_UNLIKE = "estado_unlike", "estado"  # the estado with letters wrong
    DISTANCE = "distance"  # kilometres from the point of the row
    POINT = "point"  # the municipio that the point lies in, by the outlines
    AMBITO = "ambito"  # urban for rural, or rural for urban


class NameFault(NamedTuple):
    """A difference between a row and a place: the words of each, and a penalty in points, which orders candidates."""

    difference: Difference
    given: str
    found: str
    penalty: float

    @property
    def code(self) -> str:
        """The name of the difference in answers."""
        return self.difference.code
