"""Paths of the package and of the data that ships with it; no other module knows them.

Problem files lie in ``problems/`` at the top of a checkout, and in ``kgbench/problems/`` of an installed wheel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kgbench.core.plugins import PROBLEMS, entry_points, package_folder

PACKAGE: Final = Path(__file__).resolve().parents[1]
"""The folder ``kgbench`` that this very package was imported from, links resolved."""
IMPORT_ROOT: Final = PACKAGE.parent
"""The folder that has ``kgbench`` in it: a child that is to import the same kgbench has it on its path."""


def checkout() -> Path | None:
    """The project's folder where kgbench runs from one; None where it is installed."""
    return IMPORT_ROOT if (IMPORT_ROOT / "pyproject.toml").is_file() else None


def problems_dir() -> Path:
    """The folder with ``<source>/<name>.yaml``, links resolved."""
    return ((checkout() or PACKAGE) / "problems").resolve()


def examples_dir(language: str = "triton") -> Path:
    """The folder with the example kernels in a language, ``<source>/<name>.py``."""
    return _examples() / language


def example_languages() -> tuple[str, ...]:
    """The languages there are examples in."""
    return tuple(sorted(path.name for path in _examples().iterdir() if not path.name.startswith(("_", "."))))


def exploits_dir() -> Path:
    """The folder with the candidates of ``kgbench selftest exploits``."""
    return (PACKAGE / "selftest" / "exploits" / "files").resolve()


def results_dir() -> Path:
    """The folder with published runs and records; a wheel does not carry it."""
    return ((checkout() or PACKAGE) / "results").resolve()


def records_dir() -> Path:
    """The folder with the records of each device."""
    return results_dir() / "records"


def answer_dirs() -> tuple[Path, ...]:
    """Folders with answers: problems, references, examples, published kernels, and packages that bring problems.

    No candidate may see them.
    """
    installed = filter(None, map(package_folder, entry_points(PROBLEMS)))
    published = [results_dir()] if results_dir().is_dir() else []
    return (problems_dir(), _examples(), (PACKAGE / "baselines").resolve(), exploits_dir(), *published, *installed)


def hidden_dirs(*own: Path | str) -> tuple[Path, ...]:
    """Folders that no candidate of a session may see: the package's answers, and the user's own folders of them."""
    return tuple(sorted({*answer_dirs(), *(Path(folder).resolve() for folder in own)}))


def _examples() -> Path:
    return (PACKAGE / "examples").resolve()
