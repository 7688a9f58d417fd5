"""Matches the rows of a file with the names in INEGI's own file, without a server."""

from collections.abc import Sequence

from localidades_api.cli.match import MatchJob, MatchStep, answer_from, match_and_report
from localidades_api.observability.progress_display import show_progress
from localidades_api.offline import Catalogue


def run_offline_match(job: MatchJob, sources: Sequence[str]) -> None:
    """Match the rows of a file with a catalogue, the first source, and the names of earlier releases."""
    with show_progress() as progress:
        progress.begin(MatchStep.OPEN)
        with Catalogue.open(*sources, progress=progress) as catalogue:
            match_and_report(job, answer_from(catalogue.names, job), progress, areas=catalogue.names.areas)
