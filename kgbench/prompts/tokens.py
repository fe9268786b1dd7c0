"""How many tokens a text has, without a tokenizer: every provider has its own, and most are not published.

benchmarks/prompt_tokens.py compares the estimate with published ones; docs/prompts.md has what it found.
"""

from __future__ import annotations

import math
from typing import Final

BYTES_PER_TOKEN: Final = 2.3
"""Bytes of a prompt per token, for estimates before a model is asked."""


def estimated_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    return math.ceil(round(len(text.encode()) / BYTES_PER_TOKEN, 6))
