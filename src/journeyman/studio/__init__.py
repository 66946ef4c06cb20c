"""`journeyman studio`: a local page on which a person demonstrates, and reads what is certified.

The server answers key presses from memory; everything that takes longer (learning, certifying,
auditing, reports) is done by worker processes. A session is a directory that `journeyman audit` and
`journeyman report` read as any other run.
"""
