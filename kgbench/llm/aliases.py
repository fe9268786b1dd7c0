"""Short names for ``--model``: ``claude`` for a provider and a model's id. A provider's own name wins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from kgbench.core.errors import UsageError
from kgbench.core.user_files import UserFile, bad_file

FILE: Final = UserFile(Path(__file__).with_name("aliases.toml"), "KGBENCH_ALIASES")


def aliases() -> Mapping[str, str]:
    """Aliases with their meanings; the user's win over the package's."""
    known: dict[str, str] = {}
    for path, table in FILE.tables():
        for name, spec in table.items():
            if not isinstance(spec, str) or not spec:
                raise bad_file(path, f'{name}: write {name} = "anthropic:MODEL" or the like')
            known[name] = spec
    return known


def resolve(spec: str, providers: Collection[str]) -> str:
    """What ``--model SPEC`` is short for, or ``spec`` itself where it names one of ``providers`` or no alias."""
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
