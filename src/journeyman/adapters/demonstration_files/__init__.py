"""Demonstrations in and out: `read_demonstrations`, `write_demonstrations`, one format a file."""
