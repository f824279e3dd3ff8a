"""`python -m windrow`: the same as the `windrow` command."""

from windrow.cli import main

main()
