"""Why libraries are slow at some problems: ``slow.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).with_name("slow.toml")


@cache
def why_slow() -> Mapping[str, str]:
    """The reason by problem, in half a sentence; of the problems of which one is known."""
    return {str(problem): str(why) for problem, why in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}
