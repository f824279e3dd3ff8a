"""`python -m windrow` runs the `windrow` command."""

from windrow.cli import main

main()
