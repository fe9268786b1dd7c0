"""Whether an output of a random operator has numbers of an earlier one, at any offset and in any order. Pure.

Two tests beside each other, over all calls of an evaluation:

- Windows. Each run of some neighbouring values has a hash that does not depend on where the run lies, whether it is
  read from the end, or (of ranks) on a monotone function that was applied to it. Of each output the runs whose hash
  ends in zeros are kept, so that an overlap of two outputs gives the same runs to both, whatever its offset.
- Cells. Numbers are counted in fine cells, of which one stands for u and for 1 - u. Independent outputs fill the cells
  independently; numbers that come again fill the same ones, however they were ordered.

Both hold what honest numbers do by bounds: a chance below 2**-90 for a pair of windows, Bernstein's for cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import torch

from kgbench.core.details.values import SeedFault
from kgbench.harness.verdict.random.battery import FALSE_ALARMS, FINE_BITS, MIXING, WINDOW_BITS, Numbers

RANKS_WIDTH: Final = 192
"""Comparisons of neighbours in a window of ranks. Each is worth log2(pi / 2) bits or more: together 125."""
RANKED_BITS: Final = 4.0
"""Random bits of each element from which on neighbours are seldom alike, so that ranks come again as they were."""
VALUE_WIDTHS: Final = (8, 32, 128, 512)
"""Values in a window, of which the least is taken that has random bits enough."""
KEPT_WINDOWS: Final = 1024
"""Windows of one output that are kept, about; the smaller ones keep all they have up to twice that."""
SHARED_WINDOWS: Final = 2
"""Windows of earlier outputs from which on an output is not independent: one could be alike in its hash alone."""
CELLS: Final = 1 << 17
"""Cells of (0, 1/2) in which numbers are counted: the least resolution that is asked for has 32 values in each."""
OUTPUTS: Final = 1000
"""Outputs of one evaluation, at most, among which FALSE_ALARMS is shared out."""


@dataclass
class Earlier:
    """What is known of the outputs of one name so far."""

    windows: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Hashes of windows, by what they are of and their width."""
    counts: torch.Tensor | None = None
    """float64 (CELLS,): how many numbers lie in each cell."""
    total: float = 0.0
    """How many numbers were counted; this and the next two follow from ``counts``, of which a call looks at few."""
    squares: float = 0.0
    """The sum of the squares of ``counts``."""
    most: float = 0.0
    """The largest of ``counts``."""


class Dependence:
    """Compares each output with all that came before it."""

    def __init__(self) -> None:
        self.earlier: dict[str, Earlier] = defaultdict(Earlier)

    def found(self, name: str, numbers: Numbers) -> SeedFault | None:
        """What an output has of earlier ones of its name; it counts as earlier from then on."""
        known = self.earlier[name]
        shared = 0
        for key, hashes in _kept(numbers).items():
            shared = max(shared, len(known.windows[key] & hashes))
            known.windows[key] |= hashes
        refilled = _refilled(known, numbers)
        if shared >= SHARED_WINDOWS:
            return SeedFault.OVERLAP
        return SeedFault.REORDERED if refilled else None


def _kept(numbers: Numbers) -> dict[tuple[str, int], set[int]]:
    """The windows of an output that are compared."""
    kept = {}
    if len(numbers) > RANKS_WIDTH and float(numbers.bits.min()) >= RANKED_BITS:
        rises = (numbers.uniform[1:] > numbers.uniform[:-1]).to(torch.int64) * 2 - 1
        kept["ranks", RANKS_WIDTH] = _chosen(_hashes(rises, RANKS_WIDTH))
    if (width := _value_width(numbers)) is not None:
        # The bits of a float such as 1.0 end in zeros, of which a polynomial makes more.
        symbols = _mixed(numbers.codes)
        values = torch.unique(symbols[:KEPT_WINDOWS])
        hashes = _hashes(symbols, width, int(values.sum()) if len(values) == 2 else 0)
        kept["values", width] = _chosen(hashes, _sums(numbers.bits, width) >= WINDOW_BITS)
    return kept


def _value_width(numbers: Numbers) -> int | None:
    """Values in a window with random bits enough; None where the output has no such window."""
    bits = float(numbers.bits.sum())
    fits = (w for w in VALUE_WIDTHS if len(numbers) >= w and bits * w >= 1.25 * WINDOW_BITS * len(numbers))
    return next(fits, None)


def _sums(values: torch.Tensor, width: int) -> torch.Tensor:
    """The sum of each window."""
    sums = values.new_zeros(len(values) + 1)
    torch.cumsum(values, 0, out=sums[1:])
    return sums[width:] - sums[:-width]


def _hashes(symbols: torch.Tensor, width: int, mirror: int = 0) -> torch.Tensor:
    """int64 (windows,): alike for windows that are alike, also when one is read from its end or mirrored.

    ``mirror``: what a symbol and its opposite add up to. Powers of an odd base have inverses modulo 2**64, so that each
    window's polynomial is a difference of sums.
    """
    count = len(symbols)
    base = _powers(MIXING, count, symbols.device)
    inverse = _powers(pow(MIXING % (1 << 64), -1, 1 << 64), count, symbols.device)
    opposite = _signed(mirror) * base[:width].sum()
    # In place where it can be: fresh memory of this size costs more than the arithmetic.
    forward = _sums(symbols * base, width).mul_(inverse[: count - width + 1])
    backward = _sums(symbols * inverse, width).mul_(base[width - 1 :])
    both = (opposite - forward).mul_(forward)
    return _mixed(both.addcmul_(backward, opposite - backward))


def _powers(base: int, count: int, device: torch.device) -> torch.Tensor:
    """int64 (count,): base**0, base**1 and on, modulo 2**64. Not to be written to."""
    return _at_least(base, 1 << max(0, count - 1).bit_length(), device)[:count]


@lru_cache(maxsize=64)
def _at_least(base: int, count: int, device: torch.device) -> torch.Tensor:
    powers = torch.full((count,), _signed(base), dtype=torch.int64, device=device)
    powers[:1] = 1
    return powers.cumprod(0)


def _signed(value: int) -> int:
    """Modulo 2**64, as int64 has it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _mixed(hashes: torch.Tensor) -> torch.Tensor:
    """Every bit of a hash in its low ones."""
    hashes = (hashes >> 32).bitwise_xor_(hashes).mul_(MIXING)
    return (hashes >> 29).bitwise_xor_(hashes)


def _chosen(hashes: torch.Tensor, fit: torch.Tensor | None = None) -> set[int]:
    """About KEPT_WINDOWS of them, or of those that ``fit``, the same ones in each output that has them."""
    count = len(hashes) if fit is None else int(torch.count_nonzero(fit))
    zeros = max(1, count // KEPT_WINDOWS).bit_length() - 1
    ends = hashes & ((1 << zeros) - 1) == 0
    return set(hashes[ends if fit is None else ends.logical_and_(fit)].tolist())


def _refilled(known: Earlier, numbers: Numbers) -> bool:
    """Whether an output fills the cells that earlier ones filled; its numbers are added to theirs."""
    if len(numbers) < 2 or numbers.allowance or float(numbers.bits.min()) < FINE_BITS:
        return False
    folded = torch.minimum(numbers.uniform, 1 - numbers.uniform)
    cells = folded.mul_(2 * CELLS).to(torch.int64).clamp_(0, CELLS - 1)
    if known.counts is None:
        known.counts = torch.zeros(CELLS, dtype=torch.float64, device=cells.device)
    # Given what came before, each number brings what its cell holds: a sum of independent terms within [0, most].
    brought = float(known.counts[cells].sum())
    share = len(numbers) / CELLS
    excess, variance, most = brought - share * known.total, share * known.squares, known.most
    first, rarity = not known.total, math.log(OUTPUTS / FALSE_ALARMS)
    known.counts.index_add_(0, cells, torch.ones_like(numbers.uniform))
    after = known.counts[cells]
    # Of each cell (before + new)² is before² + before new + new (before + new), and a number stands for one new each.
    known.squares += brought + float(after.sum())
    known.total += len(numbers)
    known.most = max(most, float(after.max()))
    return not first and excess > math.sqrt(2 * variance * rarity) + 2 * most * rarity / 3
