"""Each problem's own reference as its candidate: does the reference pass its own judge? Not timed."""

from __future__ import annotations

from typing import Final

from kgbench.models.provider import Provider, takes_no_argument
from kgbench.models.trusted import TrustedProvider

FORM: Final = "reference"
SUMMARY: Final = "each problem's own reference: does it pass its own judge? (not timed)"


def provider(argument: str | None, alias: str | None = None) -> Provider:
    takes_no_argument("reference", argument)
    return TrustedProvider(alias or "reference", timed=False, trusted="reference")
