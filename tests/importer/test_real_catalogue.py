"""INEGI's own files of the country, where they lie beside the project; a machine without them skips this."""

from pathlib import Path

from tests.support.application import import_into


async def test_both_cuts_are_published_and_compared(database: str, real_catalogues: Path) -> None:
    """No line is refused. What is read of each is compared with INEGI's file of Hidalgo, in test_hidalgo.py."""
    cuts = {"2012-06": 299_638, "2018-09": 304_363}
    reports = [await import_into(database, real_catalogues / f"catun_localidad_{cut}.zip") for cut in cuts]
    assert {report.release: report.localities for report in reports} == cuts
    assert [(report.states, report.rejected, report.withdrawn) for report in reports] == [(32, [], 0)] * 2
    assert reports[0].municipalities == 2_457
    comparison = reports[1].comparison
    assert (reports[0].comparison.previous, comparison.previous) == (None, "2012-06")
    assert (comparison.added, comparison.removed, comparison.renamed) == (18_149, 13_424, 4_749)
