"""The kernels that ship with kgbench: ``kgbench/examples/<source>/<name>.py``, honest and readable."""

from __future__ import annotations

from typing import Final

from kgbench.models import Provider, takes_no_argument
from kgbench.models.dir import FolderProvider
from kgbench.paths import examples_dir

SUMMARY: Final = "examples        the kernels that ship with kgbench"


def provider(argument: str | None) -> Provider:
    takes_no_argument("examples", argument)
    return FolderProvider("examples", examples_dir(), talks=False)
