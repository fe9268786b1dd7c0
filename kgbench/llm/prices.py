"""Prices of tokens. An unknown price is None, never 0. Only an empty endpoint is free.

The figures and their date are in ``prices.toml`` beside this module. A file of the user's overrides them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from kgbench.core.user_files import UserFile, bad_file
from kgbench.llm.conversation import Usage

FILE: Final = UserFile(Path(__file__).with_name("prices.toml"), "KGBENCH_PRICES")
MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
_FIGURES: Final = ("input", "output", "cache_read", "cache_write", "batch")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; None where a figure is unknown."""

    input: float | None
    output: float | None
    cache_read: float | None = None
    cache_write: float | None = None
    batch: float | None = None
    """Factor on all these prices in a batch: 0.5 is half."""
    up_to_input_tokens: int | None = None
    """Longest prompt, in input tokens, to which these figures apply; None: any length."""
    as_of: str = ""
    """The day on which the file's figures were read."""


FREE: Final = Price(0.0, 0.0, 0.0, 0.0, 1.0)


def price_of(endpoint: str, model_id: str) -> Price | None:
    """The price of a model; None when no file has one. Raises UsageError when a file is wrong."""
    if not endpoint:
        return FREE
    found = None
    for path, table in FILE.tables():
        models = table.get(endpoint, {})
        row = models.get(model_id) or models.get(_DATED.sub("", model_id))
        if row is not None:
            found = _price(path, f'{endpoint}."{model_id}"', row, table.get("as_of"))
    return found


def usd(price: Price | None, usage: Usage, batch: bool) -> float | None:
    """Cost of one reply in US dollars; None when a price or count that it needs is unknown."""
    if price is FREE:
        return 0.0
    if price is None or usage.input_tokens is None:
        return None
    prompt = usage.input_tokens + (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if price.up_to_input_tokens is not None and prompt > price.up_to_input_tokens:
        return None
    parts = (
        _times(usage.input_tokens, price.input),
        # A provider without a cache reports no cached tokens and charges for none.
        _times(usage.cache_read_tokens or 0, price.cache_read),
        _times(usage.cache_write_tokens or 0, price.cache_write),
        _times(usage.output_tokens, price.output),
    )
    return _sum(parts, price.batch if batch else 1.0)


def ceiling_usd(price: Price | None, input_tokens: int, max_tokens: int, requests: int, batch: bool) -> float | None:
    """Upper bound in US dollars of the cost of ``requests`` requests; None when a price that it needs is unknown.

    ``input_tokens`` is the sum over all requests, ``max_tokens`` the most output tokens of one request. All input
    is priced as input or as cache writes, whichever costs more.
    """
    if price is FREE:
        return 0.0
    if price is None or price.input is None:
        return None
    if price.up_to_input_tokens is not None and input_tokens > price.up_to_input_tokens * requests:
        return None
    dearest = max(price.input, price.cache_write or 0.0)
    parts = (_times(input_tokens, dearest), _times(max_tokens * requests, price.output))
    return _sum(parts, price.batch if batch else 1.0)


def _times(tokens: int | None, per_million: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or per_million is None else tokens * per_million / MILLION


def _sum(parts: tuple[float | None, ...], share: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return None if share is None or len(known) < len(parts) else sum(known) * share


def _price(path: Path, name: str, row: Any, as_of: Any) -> Price:
    if not isinstance(row, dict) or not row.keys() <= {*_FIGURES, "up_to_input_tokens"}:
        raise bad_file(path, f"{name}: a table with {', '.join(_FIGURES)} and up_to_input_tokens")
    for key, value in row.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise bad_file(path, f"{name}: {key} is no number from 0")
    figures = {key: float(row[key]) if key in row else None for key in _FIGURES}
    day = as_of.isoformat() if isinstance(as_of, date) else str(as_of or "")
    return Price(**figures, up_to_input_tokens=row.get("up_to_input_tokens"), as_of=day)
