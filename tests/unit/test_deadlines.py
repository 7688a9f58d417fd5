"""How long a client may take."""

from localidades_api.server.deadlines import ReadProgress, Timeouts


def test_head_has_ten_seconds_or_less_if_a_client_has() -> None:
    assert [Timeouts(client, keep_alive=75).head for client in (5, 600)] == [5, 10]


def test_client_is_stalled_for_as_long_as_it_reads_nothing() -> None:
    progress = ReadProgress()
    assert [progress.stalled_for(unread, now) for unread, now in ((90, 100), (90, 120), (80, 130))] == [0, 20, 0]


def test_client_that_has_read_everything_has_the_whole_time_for_its_next_response() -> None:
    progress = ReadProgress()
    assert progress.stalled_for(90, 100) == 0
    assert progress.stalled_for(0, 101) is None
    assert progress.stalled_for(90, 200) == 0
