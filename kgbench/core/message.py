"""What a numbered message stands for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A situation, not one wording of it. Several places of the code may say it."""

    meaning: str
    step: str
    """What to do next."""
