"""Runs on disk: described by TOML, locked, interrupted and continued to the same answer.

    run.toml        what was asked for, with every default written out, and digests of the inputs
    metrics.jsonl   a line per second or so of what the solver reported
    checkpoints/    the last three states of a solver that can be continued
    certified/      policy, certificate and all they rest on, as `apprentice.save` writes them; this
                    is the part to hand over, and the part that `jm.audit` reads
    result.json     the outcome in numbers and words; its presence says that the run has ended
    report.html     the report, once it was asked for
    .lock           which process works here

Every file is written atomically, the result last: killed at any moment, a run can be continued.
"""
