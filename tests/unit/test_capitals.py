"""The capitals of the estados."""

from localidades_api.catalogue.capitals import CAPITAL, CAPITALS, CIUDAD_DE_MEXICO
from localidades_api.catalogue.keys import STATE_KEYS, state_of


def test_each_estado_has_one_capital() -> None:
    assert [state_of(id_) for id_ in CAPITALS] == list(STATE_KEYS)
    assert len({*CAPITALS.values()}) == len(CAPITALS)
    assert [name for id_, name in CAPITALS.items() if state_of(id_) == CIUDAD_DE_MEXICO] == [CAPITAL]
