"""Whether two nodes judge alike: same kgbench, same libraries, same device, same sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kgbench.cluster.actor import Hello, code_sha256, version


def kgbench_difference(node: Hello) -> str:
    """Differences of kgbench there and here, in words; empty where there are none."""
    if node.kgbench != version():
        return f"kgbench is {version()} here and {node.kgbench} there"
    if node.code != code_sha256():
        return f"kgbench {version()} has other modules there than here (sha256 {code_sha256()} and {node.code})"
    return ""


def device_differences(first: Mapping[str, Any], other: Mapping[str, Any], *, mixed: bool) -> Iterator[str]:
    """Differences between the facts of two sessions, in words such as ``torch 2.12 and 2.11``.

    ``mixed``: devices of one kind may be of several models.
    """
    kinds = first.get("kind"), other.get("kind")
    names = first.get("name"), other.get("name")
    if kinds[0] != kinds[1]:
        yield f"device {kinds[0]} and {kinds[1]}"
    elif names[0] != names[1] and not mixed:
        yield f"device {names[0]} and {names[1]}"
    versions = [facts.get("versions") or {} for facts in (first, other)]
    for name in sorted(versions[0].keys() | versions[1].keys()):
        one, two = (each.get(name) for each in versions)
        if one != two:
            yield f"{name} {one or 'absent'} and {two or 'absent'}"
    levels = [(facts.get("sandbox") or {}).get("level") for facts in (first, other)]
    if levels[0] != levels[1]:
        yield f"sandbox {levels[0]} and {levels[1]}"
