"""What was agreed before any data was seen. A figure derived with other choices is not certified.

These are the choices of schema version 1; whoever changes one of them in the certificate changes
the version too.
"""

VERSION = 1
KIND = "journeyman certificate"

PLAIN_PARTS = (0.80, 0.20, 0.0)
SHAPED_PARTS = (0.15, 0.05, 0.80)
"""Of delta, for data-independent radii, the empirical Bernstein radius and the shaped estimate."""
SHAPED_FROM = 500
"""Demonstrations from which there is a shaped estimate."""

TRAINING_TENTHS = 3
"""Of ten consecutive demonstrations the first three train."""
SMOOTHING = 0.1
MARGIN = 1.4
LEAST_SPREAD = 1e-3
DEVIATION_PART, MOMENT_PART, DROPPED_PART = 0.6, 0.2, 0.2

PREMISE_LEVEL = 1e-3
CONCENTRATIONS = (1.0, 10.0, 100.0, 1e3, 1e4)
WRONG_SHARES = (1.0, 1e-2, 1e-4)
TEMPERS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0)
START_BLOCKS = (4, 32, 256)
