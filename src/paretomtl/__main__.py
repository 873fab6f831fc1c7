"""``python -m paretomtl``: the command line without its script."""

from paretomtl.cli import main

main()
