"""The battery for random operators: honest generators pass, each bad one fails by the test that is meant for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from benchmarks.false_alarms import OPERATORS, largest_shares  # noqa: E402
from kgbench.baselines.expected import Expected, Follows, Sampled  # noqa: E402
from kgbench.baselines.references import random as laws  # noqa: E402
from kgbench.core.details.sentences import words_of  # noqa: E402
from kgbench.core.details.values import SeedFault, StatisticalTest  # noqa: E402
from kgbench.harness.verdict.random.battery import Numbers, codes_of, first_failure, scores, surprise  # noqa: E402
from kgbench.harness.verdict.random.dependence import Dependence  # noqa: E402
from kgbench.harness.verdict.random.samples import MOST_SAMPLES, joined, numbers_of, random_bits  # noqa: E402

pytestmark = pytest.mark.torch
COUNT = 60_000
DTYPES = ("float32", "float16", "bfloat16", "float64")


def referee(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed((1 << 30) + seed)


def units(seed: int = 1, count: int = COUNT) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def numbers(uniform: torch.Tensor, **more: object) -> Numbers:
    """As of a float32 output whose values are the uniform numbers themselves."""
    return Numbers(uniform.double(), codes_of(uniform.float()), torch.full(uniform.shape, 21.0), **more)  # type: ignore


# --- honest ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_honest_generators_pass(operator: str, dtype: str) -> None:
    worst = largest_shares(operator, 30, 6000, getattr(torch, dtype))
    assert worst.pop("impossible") == 0
    assert max(worst.values()) < 0.9


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_test_runs_where_there_are_many_samples(operator: str) -> None:
    torch.manual_seed(3)
    sampled, got = OPERATORS[operator](COUNT, torch.float32)
    found = scores(numbers_of(sampled, got, referee()))
    assert max(score.share for score in found.values()) < 0.9
    assert len(found) >= 9


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_slope_rounded_twice_in_16_bits_passes(dtype: torch.dtype) -> None:
    """As ATen does on GPUs: the uniform number is rounded, then scaled, then rounded again."""
    slope = laws.Slope(-torch.ones(1 << 20, dtype=torch.float64), 0.125, 1 / 3)
    torch.manual_seed(1)
    got = (torch.rand(1 << 20).to(dtype).double() * (1 / 3 - 0.125) + 0.125).to(dtype)
    assert bool(slope.possible(got).all())
    assert first_failure("self", numbers_of(slope, got, referee())) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_references_draw_what_they_expect(dtype: torch.dtype) -> None:
    given = torch.rand(COUNT, dtype=torch.float64)
    for sampled in (
        laws.bernoulli(given),
        laws.exponential(given, 0.3),
        laws.poisson(given * 40),
        laws.Slope(given - 0.5, 0.1, 0.4),
    ):
        got = sampled.draw(dtype, torch.Generator().manual_seed(8))
        assert bool(sampled.possible(got).all())
        assert first_failure("self", numbers_of(sampled, got, referee())) is None


# --- bad generators ---

BAD: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "constant": (lambda u: torch.full_like(u, 0.3), "repeated values"),
    "repeated block": (lambda u: u[:1024].repeat(COUNT // 1024 + 1)[:COUNT], "repeated values"),
    "second half is the first": (lambda u: u[: COUNT // 2].repeat(2), "repeated values"),
    "biased": (lambda u: u**1.05, "mean"),
    "narrow": (lambda u: 0.04 + 0.92 * u, "variance"),
    "wrong shape": (lambda u: (u + 0.03 * torch.sin(4 * torch.pi * u)).clamp(0, 1), "Kolmogorov-Smirnov"),
    "comb": (lambda u: (u * 32).floor() / 32 + (u * 32).frac() ** 2 / 32, "chi-square"),
    "16 bits": (lambda u: (u * 65536).floor() / 65536, "resolution"),
    "evenly spread": (lambda u: torch.arange(COUNT).double() / COUNT * 0.7548776662466927 * COUNT % 1, "chi-square"),
    "correlated neighbours": (lambda u: torch.where(units(2) < 0.1, u.roll(1), u), "neighbours"),
    "correlated rows": (lambda u: torch.where(units(2) < 0.1, u.roll(1000), u), "correlation"),
    "mirrored": (lambda u: torch.cat([u[: COUNT // 2], 1 - u[: COUNT // 2]]), "correlation"),
    "same size, other sign": (
        lambda u: torch.where(units(2) < 0.5, u, torch.cat([u[:2000], 1 - u[:-2000]])),
        "correlated spread",
    ),
    "blocks alike on average": (
        lambda u: (u.reshape(-1, 75) - u.reshape(-1, 75).mean(1, keepdim=True) * 0.9).reshape(-1) + 0.45,
        "block means",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_generators_fail(name: str) -> None:
    mutator, test = BAD[name]
    bad = numbers(mutator(units()))
    failed = [each for each, score in scores(bad).items() if not score.share <= 1]
    assert test in failed
    assert first_failure("self", bad) is not None


def test_16_bit_seeds_fail_once_two_blocks_have_the_same() -> None:
    seeds = torch.randint(1 << 12, (200,), generator=torch.Generator().manual_seed(1)).tolist()
    blocks = torch.cat([units(seed, 256) for seed in seeds])
    assert len(set(seeds)) < len(seeds)
    found = first_failure("self", numbers(blocks))
    assert found is not None
    assert "each start the same run of 8 values" in words_of(found)


def test_bernoulli_blocks_that_come_again_fail() -> None:
    bits = torch.bernoulli(torch.full((1 << 15,), 0.5))
    bits[20 * 1024 : 21 * 1024] = bits[3 * 1024 : 4 * 1024]
    sampled = laws.bernoulli(torch.full(bits.shape, 0.5, dtype=torch.float64))
    found = scores(numbers_of(sampled, bits, referee()))
    assert [name for name, score in found.items() if score.share > 1] == ["repeated values"]


def test_an_element_with_its_neighbours_chance_fails() -> None:
    chance = units().double()
    got = torch.bernoulli(chance.roll(1))
    found = scores(numbers_of(laws.bernoulli(chance), got, referee()))
    assert found["by argument"].share > 1


def test_chances_exchanged_between_halves_are_seen_only_beside_the_argument() -> None:
    """Of all elements together the distribution is correct."""
    chance = torch.tensor([0.25, 0.75], dtype=torch.float64).repeat(COUNT // 2)
    mirrored = 1 - torch.bernoulli(chance)
    uniform = laws.bernoulli(chance).uniform(mirrored, referee())
    found = scores(Numbers(uniform, codes_of(mirrored), torch.full((COUNT,), 0.5), chance))
    assert found["by argument"].share > 1


def test_few_samples_support_few_tests() -> None:
    assert scores(numbers(units(count=10))) == {}
    assert "variance" not in scores(numbers(units(count=900)))


def test_surprise_is_the_chance_to_either_side() -> None:
    # Two degrees of freedom: the chance of more than x is exp(-x / 2).
    assert surprise(40.0, 2) == pytest.approx(20 / 2.302585093, rel=1e-9)
    assert surprise(1e-6, 2) == pytest.approx(6.30103, abs=1e-3)


# --- what is possible ---


def impossible(sampled: Sampled, values: list[float], dtype: torch.dtype = torch.float32) -> list[bool]:
    return (~sampled.possible(torch.tensor(values, dtype=dtype))).tolist()


def test_bernoulli_gives_the_certain_value_at_0_and_1() -> None:
    sampled = laws.bernoulli(torch.tensor([0.0, 0.0, 1.0, 1.0, 0.5, 0.5], dtype=torch.float64))
    assert impossible(sampled, [0, 1, 0, 1, 0.5, 2]) == [False, True, True, False, True, True]
    assert sampled.free.tolist() == [False] * 4 + [True] * 2


def test_bernoulli_takes_a_chance_that_broadcasts() -> None:
    sampled = laws.bernoulli(torch.empty(3, 4), p=torch.tensor([0.0, 1.0, 0.5, 0.5]))
    assert sampled.shape == (3, 4)
    assert random_bits(sampled, torch.float32) == pytest.approx(6)


def test_exponential_values_are_positive_and_within_reach() -> None:
    like = torch.empty(6)
    values = [0.0, -1.0, 1e-30, 49.0, 60.0, float("inf")]
    assert impossible(laws.exponential(like), values) == [True, True, True, False, True, True]
    # In float16 what is less than half its smallest number rounds to 0, and what is over 65519 to infinity.
    assert impossible(laws.exponential(torch.empty(2), 1e-3), [0.0, 65504], torch.float16) == [False, True]
    assert impossible(laws.exponential(torch.empty(1), 1e-4), [float("inf")], torch.float16) == [False]
    assert impossible(laws.exponential(torch.empty(2), float("inf")), [0.0, 1.0]) == [False, True]


def test_poisson_values_are_whole_numbers_within_reach() -> None:
    rates = torch.tensor([0.0, 0.0, 4.0, 4.0, 4.0, 4.0, 1e3, 1e3], dtype=torch.float64)
    values = [0, 1, 0, 2.5, -1, 60, 1200, 400]
    assert impossible(laws.poisson(rates), values) == [False, True, False, True, True, True, False, True]
    assert impossible(laws.poisson(torch.tensor([4.0], dtype=torch.float64)), [float("nan")]) == [True]


def test_poisson_steps_are_the_whole_numbers_that_round_to_a_value() -> None:
    """bfloat16 has steps of 2 from 256 on: 257 is halfway and goes to 256, 259 to 260."""
    law = laws.Poisson(torch.full((3,), 256.0, dtype=torch.float64))
    low, high = law._steps(torch.tensor([256.0, 258.0, 260.0], dtype=torch.bfloat16))
    assert low.tolist() == [256, 258, 259]
    assert high.tolist() == [258, 259, 262]


@pytest.mark.parametrize("rate", [1e-3, 0.5, 7.0, 40.0, 1000.0])
def test_poisson_probabilities_are_those_of_its_formula(rate: float) -> None:
    counts = torch.arange(int(rate + 12 * rate**0.5 + 20), dtype=torch.float64)
    law = laws.Poisson(torch.full_like(counts, rate))
    chance = torch.exp(counts * torch.tensor(rate).double().log() - rate - torch.lgamma(counts + 1))
    assert torch.allclose(law._below(counts + 1), chance.cumsum(0), atol=1e-9)
    assert float(law.bits(torch.float32)[0]) == pytest.approx(-float(chance.square().sum().log2()), rel=1e-3)


def test_slopes_lie_between_the_bounds_where_the_input_is_not_positive() -> None:
    given = torch.tensor([-1.0, -1.0, -1.0, 0.0, 2.0, 2.0, float("nan")], dtype=torch.float64)
    slope = laws.Slope(given, 0.125, 1 / 3)
    assert impossible(slope, [0.125, 1 / 3, 0.34, 0.2, 1.0, 0.2, 1.0]) == [False] * 2 + [True] + [False] * 2 + [
        True,
        False,
    ]


def test_rrelu_multiplies_by_its_noise_in_training_and_leaves_it_alone_outside() -> None:
    given, noise = torch.tensor([-2.0, 3.0]).double(), torch.tensor([7.0, 8.0]).double()
    trained = laws.rrelu_with_noise(given, noise, 0.1, 0.4, True)
    assert isinstance(trained["noise"], laws.Slope)
    assert isinstance(trained["return"], Follows)
    assert trained["return"].value({"noise": torch.tensor([0.25, 1.0])}).tolist() == [-0.5, 3.0]
    plain = laws.rrelu_with_noise_out(given, noise, lower=0.1, upper=0.4)
    assert plain["noise"].value({}).tolist() == [7.0, 8.0]
    assert isinstance(plain["out"], Expected)
    assert plain["out"].value.tolist() == [-0.5, 3.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_cell_holds_what_rounds_to_its_value(dtype: torch.dtype) -> None:
    codes = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
    values = codes.view(dtype)
    values = values[torch.isfinite(values)]
    low, high = laws.cell(values)
    inside = torch.stack([low + (high - low) * 0.001, high - (high - low) * 0.001])
    assert torch.equal(inside.float().to(dtype), values.expand(2, -1))
    ordered = values.double().abs().sort().indices
    assert torch.equal(
        laws.cell(values[ordered][values[ordered] > 0])[0][1:], laws.cell(values[ordered][values[ordered] > 0])[1][:-1]
    )


# --- many elements ---


def test_of_many_elements_stretches_are_taken_that_hold_the_first_and_the_last() -> None:
    most = MOST_SAMPLES["cpu"]
    like = torch.empty(most * 3)
    got = torch.arange(most * 3, dtype=torch.float64) + 1
    codes = numbers_of(laws.exponential(like, 1e-6), got, referee()).codes
    places = codes.view(torch.float64) - 1
    assert len(places) == most
    assert float(places[0]) == 0
    assert float(places[-1]) == most * 3 - 1
    assert len(places.unique()) == most


def test_outputs_are_joined_so_that_one_repeating_another_is_seen() -> None:
    part = numbers(units())
    other = numbers(units(2))
    assert first_failure("self", joined([part, other])) is None
    found = first_failure("self", joined([part, other, part]))
    assert found is not None
    assert found.test is StatisticalTest.REPEATS


# --- between calls ---

BANK = units(5, 1 << 17)
"""Uniform numbers of which calls take parts."""
PART = 9000


def part(call: int, step: int = 1) -> torch.Tensor:
    """Numbers of the bank from an odd offset on."""
    return BANK[1 + 2357 * call :: step][:PART]


def order(call: int, count: int) -> torch.Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(call))


REUSED = {
    "slices": (lambda call: part(call), SeedFault.OVERLAP),
    "every third": (lambda call: part(3 * call, 3), SeedFault.OVERLAP),
    "another step": (lambda call: part(call, 1 + call % 3), SeedFault.REORDERED),
    "reversed": (lambda call: part(call).flip(0) if call % 2 else part(call), SeedFault.OVERLAP),
    "one minus": (lambda call: 1 - part(call) if call % 2 else part(call), SeedFault.OVERLAP),
    "one minus, reversed": (lambda call: 1 - part(call).flip(0) if call % 2 else part(call), SeedFault.OVERLAP),
    "scaled": (lambda call: part(call) * (1 - call / 64), SeedFault.OVERLAP),
    "moved round": (lambda call: (part(call) + call * 0.037) % 1, SeedFault.OVERLAP),
    "blocks in another order": (
        lambda call: part(call).view(-1, 20)[order(call, PART // 20)].view(-1),
        SeedFault.OVERLAP,
    ),
    "numbers in another order": (lambda call: part(call)[order(call, PART)], SeedFault.REORDERED),
    "one minus in another order": (lambda call: 1 - part(call)[order(call, PART)], SeedFault.REORDERED),
}
"""What each call makes of a bank that all calls share, and what is found."""


def first_dependent(make: Callable[[int], torch.Tensor], calls: int) -> SeedFault | None:
    dependence = Dependence()
    return next(filter(None, (dependence.found("self", numbers(make(call))) for call in range(calls))), None)


@pytest.mark.parametrize("how", REUSED)
def test_calls_that_share_numbers_are_dependent(how: str) -> None:
    make, fault = REUSED[how]
    assert first_dependent(make, 12) is fault


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_honest_calls_are_independent(operator: str, dtype: str) -> None:
    torch.manual_seed(11)
    dependence, generator = Dependence(), referee()
    for _ in range(12):
        sampled, got = OPERATORS[operator](PART, getattr(torch, dtype))
        assert dependence.found("self", numbers_of(sampled, got, generator)) is None


def test_coins_of_a_bank_are_found_at_any_offset_and_turned_over() -> None:
    coins = (BANK < 0.3).float()
    law = laws.Bernoulli(torch.full((PART,), 0.3, dtype=torch.float64))
    for turned in (False, True):
        dependence = Dependence()
        first = numbers_of(law, coins[:PART], referee())
        again = coins[1001 : 1001 + PART]
        assert dependence.found("self", first) is None
        assert dependence.found("self", numbers_of(law, 1 - again if turned else again, referee()))


def test_honest_coins_are_independent() -> None:
    """Two values alone, of which one's bits are mostly zeros."""
    for chance in (0.5, 0.2, 0.03):
        law, dependence = laws.Bernoulli(torch.full((PART,), chance, dtype=torch.float64)), Dependence()
        for call in range(40):
            got = (units(100 + call, PART) < chance).float()
            assert dependence.found("self", numbers_of(law, got, referee())) is None


def test_a_share_of_a_call_is_enough() -> None:
    """A twentieth of the numbers come again, in another order a fifth of them."""
    dependence = Dependence()
    assert dependence.found("self", numbers(units(1, PART))) is None
    fresh = units(2, PART)
    fresh[1700 : 1700 + PART // 20] = units(1, PART)[333 : 333 + PART // 20]
    assert dependence.found("self", numbers(fresh)) is SeedFault.OVERLAP
    mixed = units(3, PART)
    mixed[: PART // 5] = units(1, PART)[order(0, PART)[: PART // 5]]
    assert dependence.found("self", numbers(mixed)) is SeedFault.REORDERED
