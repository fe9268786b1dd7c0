"""``python -m kgbench``: the console command from a plain checkout, without installing anything."""

from kgbench.cli.main import main

main()
