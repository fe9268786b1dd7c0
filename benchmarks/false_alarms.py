"""How near honest generators come to the limits of the battery for random operators, over thousands of seeds.

    python -m benchmarks.false_alarms [--seeds 2000] [--samples 30000] [--dtype float32]

Prints per operator and test the largest share of its limit that a sample of ATen's own used. A share over 1 is a false
alarm. The last column is the share at which the stated rate predicts one sample among so many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import click
import torch

from benchmarks.script import Script, shown, smoke_option
from kgbench.baselines.expected import Sampled
from kgbench.baselines.references import random as laws
from kgbench.harness.verdict.random.battery import FALSE_ALARMS, TESTS, scores
from kgbench.harness.verdict.random.samples import numbers_of

OWN_SEEDS: Final = 1 << 30
"""The judge's own numbers must not be those that are judged."""
DTYPES: Final = ("float32", "float64", "float16", "bfloat16")
Maker = Callable[[int, torch.dtype], tuple[Sampled, torch.Tensor]]


def _bernoulli(samples: int, dtype: torch.dtype) -> tuple[Sampled, torch.Tensor]:
    chance = torch.rand(samples, dtype=torch.float64).to(dtype)
    return laws.bernoulli(chance.double()), torch.bernoulli(chance)


def _exponential(samples: int, dtype: torch.dtype) -> tuple[Sampled, torch.Tensor]:
    values = torch.empty(samples, dtype=dtype)
    return laws.exponential(values, 1.7), values.exponential_(1.7)


def _poisson(samples: int, dtype: torch.dtype) -> tuple[Sampled, torch.Tensor]:
    rates = torch.tensor([0.01, 0.5, 4.0, 11.0, 70.0, 1500.0], dtype=dtype).repeat(samples // 6 + 1)[:samples]
    return laws.poisson(rates.double()), torch.poisson(rates)


def _rrelu(samples: int, dtype: torch.dtype) -> tuple[Sampled, torch.Tensor]:
    given, noise = -torch.rand(samples).to(dtype) - 0.1, torch.empty(samples, dtype=dtype)
    if dtype == torch.float16:
        # ATen has it on GPUs only, where the uniform number is rounded before it is scaled.
        noise = (torch.rand(samples).to(dtype).double() * (1 / 3 - 0.125) + 0.125).to(dtype)
    else:
        torch.ops.aten.rrelu_with_noise(given, noise, 0.125, 1 / 3, True)
    return laws.rrelu_with_noise(given.double(), noise.double(), training=True)["noise"], noise


OPERATORS: dict[str, Maker] = {
    "bernoulli": _bernoulli,
    "exponential_": _exponential,
    "poisson": _poisson,
    "rrelu_with_noise": _rrelu,
}


def largest_shares(operator: str, seeds: int, samples: int, dtype: torch.dtype) -> dict[str, float]:
    """By test, the largest share of its limit over seeds 0, 1, 2 …; ``impossible`` counts values that may not be."""
    worst: dict[str, float] = {"impossible": 0.0}
    for seed in shown(range(seeds), seeds, f"seeds of {operator}"):
        torch.manual_seed(seed)
        sampled, got = OPERATORS[operator](samples, dtype)
        worst["impossible"] += float((~sampled.possible(got)).sum())
        numbers = numbers_of(sampled, got, torch.Generator().manual_seed(seed + OWN_SEEDS))
        for name, score in scores(numbers).items():
            worst[name] = max(worst.get(name, 0.0), score.share)
    return worst


def predicted_share(seeds: int) -> float:
    """The share of a limit in standard deviations at which one of so many samples is expected."""
    chance = torch.tensor([0.5 / seeds, 0.5 * FALSE_ALARMS / len(TESTS)], dtype=torch.float64)
    reached, limit = torch.special.ndtri(1 - chance[0]), math.sqrt(2 * math.log(1 / float(chance[1])))
    return float(reached) / limit


@click.command(cls=Script)
@click.option("--seeds", default=2000, show_default=True, help="Samples judged per operator.")
@click.option("--samples", default=30_000, show_default=True, help="Numbers in each sample.")
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES), help="Of the numbers.")
@click.option(
    "--operator", "chosen", multiple=True, type=click.Choice(tuple(OPERATORS)), help="Only this one; may be repeated."
)
@smoke_option(seeds=3, samples=3000)
def main(seeds: int, samples: int, dtype: str, chosen: tuple[str, ...]) -> None:
    """Judge ATen's generators by the battery; prints the largest share of each test's limit."""
    for operator in chosen or OPERATORS:
        worst = largest_shares(operator, seeds, samples, getattr(torch, dtype))
        for name, share in worst.items():
            print(f"{operator:18s} {name:20s} {share:6.3f}")
    print(f"{seeds} seeds of {samples} samples, {dtype}; a test of normal tails reaches {predicted_share(seeds):.3f}")


if __name__ == "__main__":
    main()
