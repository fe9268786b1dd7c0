"""The null test: the library stands where the candidate would be, so every ratio should be 1."""

from __future__ import annotations

from typing import Final

from kgbench.models.provider import Provider, takes_no_argument
from kgbench.models.trusted import TrustedProvider

FORM: Final = "baseline"
SUMMARY: Final = "the library against itself: what the clock measures when nothing differs"


def provider(argument: str | None, alias: str | None = None) -> Provider:
    takes_no_argument("baseline", argument)
    return TrustedProvider(alias or "baseline", timed=True, trusted="baseline")
