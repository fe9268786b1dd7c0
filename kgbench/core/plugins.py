"""Extensions by other installed packages, through entry points: providers of candidates and sources of problems.

Entry points are read from the packages' metadata; a package is imported only when it is used. A broken entry point is
named in a warning and left out; others still work.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core.errors import numbered

PROVIDERS: Final = "kgbench.providers"
"""Group of entry points ``NAME = "package.module"``: a module as those of ``kgbench/models/providers`` are."""
PROBLEMS: Final = "kgbench.problems"
"""Group of entry points ``SOURCE = "package:folder"``: the folder in the package that has ``SOURCE/NAME.yaml``."""


@dataclass(frozen=True)
class Plugin:
    """One entry point."""

    group: str
    name: str
    value: str
    package: str
    """Name and version of the installed package: ``acme-kernels 1.0``."""


def plugins(group: str, taken: Collection[str]) -> dict[str, Plugin]:
    """By name, those that can be told apart; ``taken`` are kgbench's own names, which no package may have."""
    found: dict[str, list[Plugin]] = {}
    for each in entry_points(group):
        found.setdefault(each.name, []).append(each)
    usable = {}
    for name, several in sorted(found.items()):
        if name in taken:
            for each in several:
                leave_out(each, f"kgbench has '{name}' itself; the package has to take another name")
        elif len(several) > 1:
            packages = " and ".join(each.package for each in several)
            leave_out(several[0], f"{packages} offer it both, so neither is used; uninstall one")
        else:
            usable[name] = several[0]
    return usable


def leave_out(plugin: Plugin, why: str) -> None:
    """Says on standard error, once in a process, that an entry point is not used."""
    _say_once(numbered("KGB630", f"{plugin.package}: {plugin.group} '{plugin.name}' is left out: {why}"))


def package_folder(plugin: Plugin) -> Path | None:
    """The folder of the package that an entry point names, which is not imported; None where it is not there."""
    package = plugin.value.partition(":")[0].partition(".")[0].strip()
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]).resolve() if folders else None


@functools.cache
def entry_points(group: str) -> tuple[Plugin, ...]:
    """All entry points of a group, also those whose names clash."""
    # Importing it takes longer than `kgbench list` takes to find its files.
    from importlib import metadata

    found = []
    for each in metadata.entry_points(group=group):
        package = f"{each.dist.name} {each.dist.version}" if each.dist else "a package without metadata"
        found.append(Plugin(group, each.name, each.value, package))
    return tuple(sorted(set(found), key=lambda each: (each.name, each.package, each.value)))


@functools.cache
def _say_once(words: str) -> None:
    print(f"kgbench: {words}", file=sys.stderr)
