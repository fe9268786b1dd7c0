"""The explanation of a numbered message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A situation; several places of the code may report it in different words."""

    meaning: str
    step: str
    """What to do next."""
