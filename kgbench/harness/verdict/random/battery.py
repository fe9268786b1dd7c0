"""Tests whether numbers are independent and uniform on (0, 1), with a false-alarm rate that is stated. Pure.

A battery of tests, each with an equal share of ``FALSE_ALARMS``, the most that honest numbers may fail a battery. A
run asks for some thousand batteries at most, so that it accuses an honest kernel less than once in a million runs.
Limits are tail bounds that hold for every number of samples (Hoeffding, Dvoretzky-Kiefer-Wolfowitz), or quantiles of
the limiting distribution where there are so many samples that those hold far out; a test that needs more samples than
there are is left out. ``benchmarks/false_alarms.py`` measures how near honest generators come.

Where an honest output may differ a little from its distribution (``allowance``, the largest difference of the
distribution functions), limits are that much wider.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch

from kgbench.core.details.values import Statistic, StatisticalTest

FALSE_ALARMS: Final = 1e-10
"""Largest chance that honest numbers fail a battery."""
UNALIKE_BITS: Final = 64.0
"""Random bits from which on two outputs are never alike by chance."""
WINDOW_BITS: Final = 96.0
"""Random bits of a window, from which on no two windows of one battery are alike by chance."""
FINE_BITS: Final = 18.0
"""Random bits of an element, from which on numbers must have a resolution of more than 2**-20 of their range."""
MIXING: Final = 0x9E3779B97F4A7C15 - (1 << 64)
"""Odd factor that spreads bits in hashes: 2**64 divided by the golden ratio, as int64."""
CELLS: Final = 256
"""Cells of (0, 1) in which numbers are counted."""
SIDE: Final = 16
"""Cells along each side of a square in which pairs are counted, and of (0, 1) where distributions are not exact."""
PER_CELL: Final = 100
"""Fewest numbers per cell, on average, with which cells are counted."""
SMALLEST_BLOCK: Final = 64
"""Numbers in each of the smallest blocks whose means are compared."""
LEAST_BLOCKS: Final = 64
"""Fewest blocks of one size whose means are compared."""


@dataclass(frozen=True)
class Numbers:
    """One or more outputs of the same distribution, one behind the other."""

    uniform: torch.Tensor
    """float64 (n,): independent and uniform on (0, 1), if all is well."""
    codes: torch.Tensor
    """int64 (n,): the bits of the values that they were made from."""
    bits: torch.Tensor
    """float64 (n,): at least ``-log2`` of the chance that a value comes out alike twice."""
    beside: torch.Tensor | None = None
    """float64 (n,): values that the numbers may not depend on; None where there are none."""
    allowance: float = 0.0

    def __len__(self) -> int:
        return self.uniform.numel()


@dataclass(frozen=True)
class Score:
    """What a test found and from where on it fails."""

    value: float
    limit: float
    places: tuple[int, ...] = ()
    """What a failing test found, as in ``Statistic``."""
    high: bool | None = None
    """Whether mean or variance are too large."""

    @property
    def share(self) -> float:
        """How much of the limit is used; over 1 where the numbers fail."""
        return self.value / self.limit if math.isfinite(self.value) else math.inf


def first_failure(output: str, numbers: Numbers) -> Statistic | None:
    """The first test that the numbers of an output fail; None when they pass."""
    for test, score in scores(numbers).items():
        if score.share > 1 or math.isnan(score.value):
            return Statistic(output, test, score.value, score.limit, len(numbers), score.high, score.places)
    return None


def scores(numbers: Numbers) -> dict[StatisticalTest, Score]:
    """Every test that the samples are enough for."""
    chance = FALSE_ALARMS / len(TESTS)
    found = {name: test(numbers, chance) for name, test in TESTS.items()}
    return {name: score for name, score in found.items() if score is not None}


def alike(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two outputs' codes are the same."""
    return bool(torch.equal(first, second))


def codes_of(values: torch.Tensor) -> torch.Tensor:
    """int64 (n,): the bits of each value of a real tensor, in row-major order."""
    flat = values.contiguous().reshape(-1)
    if flat.dtype == torch.bool:
        return flat.to(torch.int64)
    integer = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()]
    return flat.view(integer).to(torch.int64)


# --- limits ---


def deviations(chance: float) -> float:
    """How many standard deviations a sub-Gaussian variable passes, to either side, at most by this chance."""
    return math.sqrt(2 * math.log(2 / chance))


def surprise(chi_square: float, freedom: int) -> float:
    """-log10 of the chance that chi-square is as far out, to the side on which it lies."""
    pair = torch.tensor([freedom / 2, chi_square / 2], dtype=torch.float64)
    above, below = torch.special.gammaincc(*pair), torch.special.gammainc(*pair)
    smaller = min(float(above), float(below))
    return -math.log10(smaller) if smaller > 0 else math.inf


def _chi_square(counts: torch.Tensor, expected: float, freedom: int, chance: float) -> Score:
    value = float(((counts.to(torch.float64) - expected) ** 2).sum() / expected)
    return Score(surprise(value, freedom), -math.log10(chance / 2))


# --- tests: None where there are too few samples ---


def _mean(numbers: Numbers, chance: float) -> Score | None:
    count = len(numbers)
    if count < 16:
        return None
    mean, scale = float(numbers.uniform.mean()), math.sqrt(12 * count)
    return Score(abs(mean - 0.5) * scale, deviations(chance) + numbers.allowance * scale, high=mean > 0.5)


def _variance(numbers: Numbers, chance: float) -> Score | None:
    count = len(numbers)
    if count < 1000:
        return None
    variance, scale = float((numbers.uniform - 0.5).square().mean()), math.sqrt(180 * count)
    limit = deviations(chance) + numbers.allowance / 2 * scale
    return Score(abs(variance - 1 / 12) * scale, limit, high=variance > 1 / 12)


def _kolmogorov_smirnov(numbers: Numbers, chance: float) -> Score | None:
    count = len(numbers)
    if count < 16:
        return None
    ordered = numbers.uniform.sort().values
    steps = torch.arange(count + 1, dtype=torch.float64, device=ordered.device) / count
    distance = float(torch.maximum(steps[1:] - ordered, ordered - steps[:-1]).max())
    limit = math.sqrt(math.log(2 / chance) / 2) + numbers.allowance * math.sqrt(count)
    return Score(distance * math.sqrt(count), limit)


def _bins(numbers: Numbers, chance: float) -> Score | None:
    """Chi-square on 256 bins; where there is an allowance, the worst of 16 instead."""
    count = len(numbers)
    if count < CELLS * PER_CELL:
        return None
    if not numbers.allowance:
        return _chi_square(_counts(numbers.uniform, CELLS), count / CELLS, CELLS - 1, chance)
    expected = count / SIDE
    scale = math.sqrt(expected * (1 - 1 / SIDE))
    worst = float((_counts(numbers.uniform, SIDE) - expected).abs().max()) / scale
    return Score(worst, deviations(chance / SIDE) + 2 * numbers.allowance * count / scale)


def _pairs(numbers: Numbers, chance: float) -> Score | None:
    """Neighbours against each other: chi-square on 16 x 16 bins."""
    halves = numbers.uniform[: len(numbers) // 2 * 2].reshape(-1, 2)
    if len(halves) < SIDE * SIDE * PER_CELL or numbers.allowance:
        return None
    cells = _cell(halves[:, 0], SIDE) * SIDE + _cell(halves[:, 1], SIDE)
    counts = torch.bincount(cells, minlength=SIDE * SIDE)
    return _chi_square(counts, len(halves) / SIDE**2, SIDE**2 - 1, chance)


def _beside(numbers: Numbers, chance: float) -> Score | None:
    """Values against what they may not depend on, by its rank: chi-square on 16 x 16 bins."""
    count = len(numbers) // SIDE * SIDE
    if numbers.beside is None or count < SIDE * SIDE * PER_CELL or numbers.allowance:
        return None
    order = numbers.beside[:count].argsort(stable=True)
    group = torch.arange(count, device=order.device) // (count // SIDE)
    cells = group * SIDE + _cell(numbers.uniform[order], SIDE)
    counts = torch.bincount(cells, minlength=SIDE * SIDE)
    return _chi_square(counts, count / SIDE**2, SIDE * (SIDE - 1), chance)


def _lags(numbers: Numbers, chance: float) -> Score | None:
    """The correlation of the values with themselves at every lag: neighbours, rows, blocks that come again."""
    return _worst_lag(numbers.uniform, 256, chance)


def _spreads(numbers: Numbers, chance: float) -> Score | None:
    """The same for how far the values are from the middle, which sees what comes again mirrored."""
    return _worst_lag((numbers.uniform - 0.5).square(), 4096, chance)


def _worst_lag(values: torch.Tensor, least: int, chance: float) -> Score | None:
    """Lags at which at least so many pairs are left."""
    count = values.numel()
    if count < 2 * least:
        return None
    centred = values - values.mean()
    size = 1 << (2 * count - 1).bit_length()
    spectrum = torch.fft.rfft(centred, n=size)
    sums = torch.fft.irfft(spectrum.abs().square(), n=size)[1 : count - least]
    pairs = torch.arange(count - 1, least, -1, device=values.device, dtype=torch.float64)
    variance = max(float(centred.square().mean()), 1e-12)
    worst = (sums.abs() / (variance * pairs.sqrt())).max(dim=0)
    return Score(float(worst.values), deviations(chance / len(sums)), (int(worst.indices) + 1,))


def _blocks(numbers: Numbers, chance: float) -> Score | None:
    """Means of blocks of 64, 256, 1024 … elements: they vary as means of so many do, no more and no less."""
    size, worst, sizes = SMALLEST_BLOCK, (0.0, 0), 0
    values = numbers.uniform - numbers.uniform.mean()
    variance = max(float(values.square().mean()), 1e-12)
    while (blocks := len(numbers) // size) >= LEAST_BLOCKS:
        means = values[: blocks * size].reshape(blocks, size).mean(dim=1)
        value = float((means - means.mean()).square().sum()) * size / variance
        worst, sizes, size = max(worst, (surprise(value, blocks - 1), size)), sizes + 1, size * 4
    if not sizes:
        return None
    return Score(worst[0], -math.log10(chance / 2 / sizes), (worst[1],))


def _repeats(numbers: Numbers, chance: float) -> Score | None:
    """Windows of values that come twice, at a place that is a multiple of their length."""
    count, total = len(numbers), float(numbers.bits.sum())
    if total < 2 * WINDOW_BITS:
        return None
    width = max(4, 1 << max(0, math.ceil(math.log2(count * 128.0 / total))))
    windows = numbers.codes[: count // width * width].reshape(-1, width)
    bits = numbers.bits[: count // width * width].reshape(-1, width).sum(dim=1)
    chosen = (bits >= WINDOW_BITS).nonzero()[:, 0]
    if len(chosen) < 2:
        return None
    hashes = _hashes(windows[chosen])
    order = hashes.argsort()
    first, second = chosen[order[:-1]], chosen[order[1:]]
    candidates = (hashes[order[:-1]] == hashes[order[1:]]).nonzero()[:, 0]
    same = candidates[(windows[first[candidates]] == windows[second[candidates]]).all(dim=1)]
    places = sorted(int(each[same[0]]) * width for each in (first, second)) if len(same) else []
    return Score(float(len(same)), 0.5, (*places, width) if places else ())


def _resolution(numbers: Numbers, chance: float) -> Score | None:
    """Pairs of equal values among fine ones: as few as numbers of 22 bits have, with room for four times as many."""
    count = len(numbers)
    if count < 2000 or float(numbers.bits.min()) < FINE_BITS:
        return None
    times = torch.unique(numbers.codes, return_counts=True)[1].to(torch.float64)
    pairs = float((times * (times - 1) / 2).sum())
    return Score(pairs, 4 * count * (count - 1) / 2 / 2**22 + 30, (times.numel(),))


TESTS: Final[dict[StatisticalTest, Callable[[Numbers, float], Score | None]]] = {
    StatisticalTest.REPEATS: _repeats,
    StatisticalTest.MEAN: _mean,
    StatisticalTest.VARIANCE: _variance,
    StatisticalTest.DISTRIBUTION: _kolmogorov_smirnov,
    StatisticalTest.BINS: _bins,
    StatisticalTest.RESOLUTION: _resolution,
    StatisticalTest.BY_ARGUMENT: _beside,
    StatisticalTest.BLOCKS: _blocks,
    StatisticalTest.PAIRS: _pairs,
    StatisticalTest.LAGS: _lags,
    StatisticalTest.SPREADS: _spreads,
}
"""What runs each test, in the order in which failures are shown."""


def _cell(values: torch.Tensor, cells: int) -> torch.Tensor:
    return (values * cells).to(torch.int64).clamp_(0, cells - 1)


def _counts(values: torch.Tensor, cells: int) -> torch.Tensor:
    return torch.bincount(_cell(values, cells), minlength=cells)


def _hashes(windows: torch.Tensor) -> torch.Tensor:
    """int64 (windows,): equal for equal rows, and seldom for others."""
    mixed = torch.zeros(len(windows), dtype=torch.int64, device=windows.device)
    for column in windows.unbind(dim=1) if windows.shape[1] <= 64 else _folded(windows):
        mixed = (mixed ^ column) * MIXING
        mixed = mixed ^ (mixed >> 29)
    return mixed


def _folded(windows: torch.Tensor) -> list[torch.Tensor]:
    """Long rows as 64 columns: sums with weights that depend on the place."""
    width = windows.shape[1]
    weights = torch.arange(1, 2 * width, 2, device=windows.device) * MIXING
    return list((windows * weights).reshape(len(windows), 64, width // 64).sum(dim=2).unbind(dim=1))
