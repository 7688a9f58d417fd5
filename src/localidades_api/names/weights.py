"""The figures that decide how names are compared, judged and ranked.

Penalties and coefficients were calibrated on names from public registers (docs/decisions/certainty.md), points of
suggestions on queries as people type them (docs/decisions/names.md).
"""

import math
from collections.abc import Mapping

from localidades_api.names.places import NameKind

# -- Differences between a row and a place, in addition to the penalties of `reasons`

# A word added or missing: for the first one, for each further one, and for its share of the letters of the longer name.
FIRST_WORD_PENALTY = 6.0
NEXT_WORD_PENALTY = 1.0
WORD_SHARE_PENALTY = 22.0
# Words that are alike, from 0 to 1.
SPELLING_PENALTY = 60.0  # times how unlike the word is
MIN_WORD_LIKENESS = 0.65  # of two spellings of one word
MIN_SPACING_LIKENESS = 0.8  # of words with other spaces: one letter in five may differ
OTHER_FIRST_LETTER = 0.08  # what a different first letter takes away
MIN_WHOLE_LIKENESS = 0.72  # of two names compared letter by letter, without their spaces
SAME_SOUND_LIKENESS = 0.96  # at least, if half of the letters agree
MIN_SOUND_LIKENESS = 0.5
SAME_SINGULAR_LIKENESS = 0.95  # at least, if two spellings differ in an `s` at the end
# The municipio and the point.
MUNICIPIO_PENALTY = 0.4  # times how unlike its name is, of 100
SAME_FORMER_LIKENESS = 99.0  # of a municipio's former name and the same name in the row
DISTANCE_PENALTIES = ((2.0, 0.0), (5.0, 2.0), (15.0, 6.0), (40.0, 14.0), (math.inf, 25.0))  # up to so many kilometres
MAX_COST = 100.0  # the sum of the penalties of a name; beyond it two names have nothing in common

# -- Candidates of a row

MAX_CANDIDATE_COST = 72.5  # penalties; a place with more is not a candidate
MAX_COST_OF_WORDS = 11.0  # the least penalties, beyond which names are also compared letter by letter
CLOSE_COST = 4.0  # penalties behind the best place, within which more places are judged than a result shows
MIN_SCORE_IN_MUNICIPIO = 80.0  # 100 minus the least penalties in the municipio; below it other municipios are searched
MIN_COST_OF_OTHER_NAME = 2.0  # penalties from which another place may have the name of a row with a key
LEAD_WITHOUT_RIVAL = 60.0  # the penalties of the next candidate, if there is none

PROMINENT_RATIO = 10  # times the population of a place, with which a town that the name fits as well comes before it

# -- Evidence for a candidate

HEAVY_COST = 20.0  # penalties of a place that differs a lot
LEAD = 6.0  # penalties between the candidate and the next one, if it has hardly a rival
LEAD_ONCE_READ = 2.0  # the same, if the names are the same once they are read
MAX_LEAD = 3.0  # tens of points, in either direction
MAX_SHARED_RARITY = 8.0
MAX_SHARED_WORDS = 4
KILOMETRES = ((1.0, "km_under_1"), (3.0, "km_1_to_3"), (8.0, "km_3_to_8"))  # evidence of fewer; then `km_over_8`
MAX_RARITY = 6.0  # decimal logarithm: no word is rarer
PLACES = 304_364  # of the country that the coefficients were fitted to; also for a release of a part of it
MIN_LETTERS_OF_SLIP = 6  # of a word with one wrong; a shorter one may be another word
MIN_PLACES_OF_WORD = 2  # a spelling that fewer places have may be a slip

# -- Certainty: probabilities

SURE = 0.95  # from which a row is certain, unless the caller sets another bound
MIN_SURE, MAX_SURE = 0.8, 0.999  # the bounds that a caller may set
UNLIKELY = 0.1  # of the first candidate: below it, no place is like the row
LITERAL = 0.998  # of the only place of a municipio with the name as the catalogue writes it; measured
MISSPELT_ESTADO = 0.99  # of an estado whose name has letters wrong
BY_KEY = 0.999  # of the place with the key of the row, if its name agrees
# Assumed: the judged tables have too few of these rows for a fit.
IN_TOWN = 0.8  # that a street, or a colonia that is no place, is in the largest town of its municipio
MAX_KILOMETRES = 5.0  # from the point of the row, above which nothing is certain
FAR_COEFFICIENT = -2.0  # of a point that contradicts the name and the municipio, of which the fit has too few
AMBITO_COEFFICIENT = -4.0  # of evidence that the fit lacks: its rows don't say whether they are urban
SUGGESTED = (0.5, 0.09, 0.07, 0.04, 0.03)  # of the suggestions for a text that nothing matches, by their order

# -- Suggestions: points of a hundred that a name loses, unless a comment says otherwise

LEFT_OUT = 26.0  # if the whole name was left out; for a part, the part
MIN_LEFT_OUT = 3.0
LEFT_OUT_KIND = 2.0  # if only words for the kind of a place were left out
LEFT_OUT_BEGINNING = 4.0  # if the first word was left out, in addition
LEFT_OUT_OF_SEAT = 0.6  # times the above: cabeceras are known by a part of their name
ONLY_KIND = 30.0  # if only words for the kind of a place were typed
NO_NAME = 45.0  # if only areas of the place were named
MISSPELT_LETTER = 9.0
MISSPELT_SHORT_WORD = 3.0  # in addition, in a word of fewer than five letters
MISSPELT_FIRST_LETTER = 2.0  # in addition
UNKNOWN_WORD = 40.0
UNKNOWN_KIND = 8.0
PART_OF_MUNICIPIO = 6.0  # if only a part of the municipio's name was typed; times the rest of it
BEGINNING_OF_AREA = 2.0
BEGINNING_OF_NAME = 5.0  # if the last word is unfinished
OTHER_ORDER = 3.0
AREA_FIRST = 9.0  # if the municipio comes before the name
CUT = 20.0  # if the name does not go on as the text does
NAME_KINDS: Mapping[NameKind, float] = {  # by which of a place's names was typed
    NameKind.OWN: 0.0,
    NameKind.BRACKET: 3.0,
    NameKind.SEAT: 2.0,
    NameKind.SHARED_SEAT: 30.0,
    NameKind.EVERYDAY: 1.0,
    NameKind.FORMER: 8.0,
}
LITERAL_NAME = 1.0  # points won by a name typed as it is written
LITERAL_FORMER_NAME = 6.0  # points won by a former name typed as it was written
JOINED_NAME = 92.0  # points of a name typed without its spaces
ARTICLE_ONLY = 90.0  # points of a name of which the first words were typed, all of them stop words
WHOLE_LABEL = 1000.0  # points: before everything else
KEY_OF_PLACE = 100.0  # points of a place found by its key or its area's
KEY_OF_AREA = 200.0  # points of an area found by its key
SURE_FIT = 78.0  # points from which no misspelling is considered
LIKELY_FIT = 58.0  # points from which no word is left out
WHOLE_NAME = 88.0  # points from which a name was typed whole
ESTADO_POINTS, MUNICIPIO_POINTS = 45.0, 30.0  # points won by an area

# -- Likeness of the names of areas, from 0 to 100

SAME_NAME = 100.0
NEARLY_SAME_NAME = 99.0  # at most, of names that are not quite the same
MIN_NAME_LIKENESS = 80.0  # below it two names are different
MIN_JOINED_LIKENESS = 92.0  # of names without their spaces, which are more alike
SHARED_WORDS_LOSS = 6.0  # of a name with only some words of the other one
MAX_SHARED_WORDS_LIKENESS = 94.0  # the name of which only these words were given
MIN_LETTERS_OF_CUT_NAME = 12  # columns of fixed width cut longer names
SAME_UNTITLED_NAME = 98.5  # of names that differ in titles: `Mpio. de`, `Heroica Ciudad de`
MAX_BEHIND = 4.0  # an area further behind the best one is not a candidate
MIN_PLACES_OF_OTHER_WORD = 4  # with a word that is like an estado's name, but no slip
MIN_LETTERS_OF_ESTADO = 6  # of a name of an estado with letters wrong; fewer may be another word
MAX_WRONG_LETTERS_OF_ESTADO = 2
LETTERS_OF_ESTADO_PER_WRONG_ONE = 4  # at least
