"""Texts that several problems of a source share. They are in one file in the problems' folder.

A line of ``doc`` that is only ``{name}`` is replaced by the text of that name.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

from kgbench.core.errors import shown_path
from kgbench.core.names import did_you_mean
from kgbench.problem.model import SHARED_TEXTS
from kgbench.problem.yamltree import Node, read_tree

_MARK: Final = re.compile(r"^\{(\w+)\}$", re.MULTILINE)


def whole_doc(node: Node, text: str) -> tuple[str, str]:
    """(doc with the shared texts inserted, the shared texts alone). Raises Complaint at a name without a text."""
    names = _MARK.findall(text)
    if not names:
        return text, ""
    path = node.file.parent / SHARED_TEXTS
    known = _fragments(path, path.stat().st_mtime_ns) if path.is_file() else {}
    for name in names:
        if name not in known:
            node.fail("KGB233", f"{shown_path(path)} has no text '{name}'", did_you_mean(name, known))
    return _MARK.sub(lambda match: known[match[1]], text), "".join(known[name] for name in names)


@functools.lru_cache(maxsize=32)
def _fragments(path: Path, changed: int) -> dict[str, str]:
    """Texts by name. ``changed``: the file's modification time in ns, so that a changed file is read again."""
    root = read_tree(path, path.read_text(encoding="utf-8"))
    return {name: child.text().rstrip("\n") for name, child in root.mapping().items()}
