"""Where the data that ships with the package lies. The only module that knows.

In a checkout ``kgbench/problems`` is a link to ``../problems``; in an installed wheel it is a folder.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def problems_dir() -> Path:
    """The folder with ``<source>/<name>.yaml``, links resolved."""
    return (_PACKAGE / "problems").resolve()


def examples_dir() -> Path:
    """The folder with the example kernels, ``<source>/<name>.py``."""
    return (_PACKAGE / "examples").resolve()


def answer_dirs() -> tuple[Path, ...]:
    """Folders of this package that hold answers: problems, references and examples. No candidate may see them."""
    return (problems_dir(), examples_dir(), (_PACKAGE / "baselines").resolve())
