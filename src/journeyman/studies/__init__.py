"""Studies: several methods on the same problems, measured alike, that survive being killed.

    study.json      marks the directory of a study, with the version that made it
    trials/         one JSON file per finished trial, named by the content of what was tried
    report.html     the page of `journeyman compare`, and trials.csv with every number
    .lock           which process works here

A trial is one solver on one problem with one seed: solved, evaluated, certified and timed on a
worker, which writes its file at once. What decides the outcome of a trial is in its name, so a
repeated study does what is missing and nothing else, and a changed option is another trial.
"""

from journeyman.studies.compare import compare
from journeyman.studies.comparison import Comparison
from journeyman.studies.trial import Trial

__all__ = ["Comparison", "Trial", "compare"]
