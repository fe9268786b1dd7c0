"""Short names for ``--model``: ``claude`` stands for a provider and a model id. A provider's name is never an alias."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from kgbench.core.errors import UsageError
from kgbench.core.user_files import UserFile, bad_file

FILE: Final = UserFile(Path(__file__).with_name("aliases.toml"), "KGBENCH_ALIASES")


def aliases() -> Mapping[str, str]:
    """The meaning of each alias. The user's file overrides the package's.

    Raises UsageError when a file is wrong.
    """
    known: dict[str, str] = {}
    for path, table in FILE.tables():
        for name, spec in table.items():
            if not isinstance(spec, str) or not spec:
                raise bad_file(path, f'{name}: write {name} = "anthropic:MODEL" or the like')
            known[name] = spec
    return known


def resolve(spec: str, providers: Collection[str]) -> str:
    """The meaning of the alias ``spec``, or ``spec`` itself where it begins with a provider's name or no alias.

    Raises UsageError when a colon follows an alias, or when a file of aliases is wrong.
    """
    name, colon, rest = spec.partition(":")
    if name in providers:
        return spec
    meant = aliases().get(name)
    if meant is None:
        return spec
    if colon:
        provider = meant.partition(":")[0]
        raise UsageError(
            "KGB538",
            f"--model {spec}: {name} is short for {meant}; for another model write {provider}:{rest or 'MODEL'}",
        )
    return meant
