"""What a referee judges with. The defaults are the only ones that ever decide a candidate's result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Defences:
    """The collaborators of one evaluation; each is strict unless whoever makes the referee says otherwise."""

    without: frozenset[str] = frozenset()


STRICT: Final = Defences()
