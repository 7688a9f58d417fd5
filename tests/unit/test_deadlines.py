"""Timeouts for heads and stalled clients."""

from localidades_api.server.deadlines import ReadProgress, Timeouts


def test_head_timeout_is_ten_seconds_at_most() -> None:
    assert [Timeouts(client, keep_alive=75).head for client in (5, 600)] == [5, 10]


def test_client_that_reads_nothing_is_stalled() -> None:
    progress = ReadProgress()
    assert [progress.stalled_for(unread, now) for unread, now in ((90, 100), (90, 120), (80, 130))] == [0, 20, 0]


def test_reading_everything_resets_the_stall_timeout() -> None:
    progress = ReadProgress()
    assert progress.stalled_for(90, 100) == 0
    assert progress.stalled_for(0, 101) is None
    assert progress.stalled_for(90, 200) == 0
