"""Each problem's own reference as its candidate: does the reference pass its own judge? Not timed."""

from __future__ import annotations

from typing import Final

from kgbench.models.provider import Provider, takes_no_argument
from kgbench.models.trusted import TrustedProvider

SUMMARY: Final = "reference       each problem's own reference: does it pass its own judge? (not timed)"


def provider(argument: str | None) -> Provider:
    takes_no_argument("reference", argument)
    return TrustedProvider("reference", timed=False, trusted="reference")
