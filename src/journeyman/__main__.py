"""`python -m journeyman` is the command line."""

from journeyman.cli.main import main

main()
