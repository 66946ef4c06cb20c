"""A study on three nodes has the figures of one process, and keeps every trial."""

from dataclasses import replace

import journeyman as jm
import study_methods


def test_the_cluster_changes_no_figure_of_a_study(joined, tmp_path):
    methods = {"lp": jm.LinearProgram(), "columns": jm.ColumnGeneration()}

    def run(executor, place):
        found = jm.compare(
            study_methods.drawn, methods, range(2), expert=study_methods.grid()[2],
            executor=executor, directory=tmp_path / place,
        )  # fmt: skip
        return [replace(trial, seconds=0.0) for trial in found.trials]

    assert run(joined, "there") == run(jm.Serial(), "here")
    kept = [{path.name for path in (tmp_path / place / "trials").iterdir()} for place in
            ("here", "there")]  # fmt: skip
    assert kept[0] == kept[1]
    assert len(kept[0]) == 4
