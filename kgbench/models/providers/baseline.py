"""The null test: the library stands where the candidate would be, so every ratio should be 1."""

from __future__ import annotations

from typing import Final

from kgbench.models.provider import Provider, takes_no_argument
from kgbench.models.trusted import TrustedProvider

SUMMARY: Final = "baseline        the library against itself: what the clock measures when nothing differs"


def provider(argument: str | None) -> Provider:
    takes_no_argument("baseline", argument)
    return TrustedProvider("baseline", timed=True, trusted="baseline")
