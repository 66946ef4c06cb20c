"""Numbers for the documentation, each printed beside a named peer in the same run: `make bench`."""
