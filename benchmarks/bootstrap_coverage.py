"""How often the bootstrap intervals of docs/scores.md hold the truth, over runs that are drawn from known chances.

Of each problem the chance to be right is drawn from Beta(0.5, 0.5) (mean 0.5), its speedup's logarithm from N(0, 0.5),
with N(0, 0.2) between samples. No GPU, a minute:

    python -m benchmarks.bootstrap_coverage [--runs 400]
"""

from __future__ import annotations

import math

import click
import numpy as np

from benchmarks.script import Script, shown, smoke_option
from kgbench.scores.bootstrap import Sampled, Statistic, draws, interval
from kgbench.scores.score import Over

STATISTICS = {"correct": Statistic(0, Over.MEAN), "speedup": Statistic(1, Over.GEOMETRIC_MEAN)}
TRUTHS = {"correct": 0.5, "speedup": 1.0}


def run(rng: np.random.Generator, problems: int, samples: int) -> list[Sampled]:
    made = []
    for number in range(problems):
        right = rng.random(samples) < rng.beta(0.5, 0.5)
        logs = np.where(right, rng.normal(0, 0.5) + rng.normal(0, 0.2, samples), np.nan)
        made.append(Sampled(str(number), np.stack([right.astype(float), logs])))
    return made


@click.command(cls=Script)
@click.option("--runs", default=400, show_default=True, help="Drawn runs of each size.")
@smoke_option(runs=3)
def main(runs: int) -> None:
    """How often the intervals of scores hold the truth; prints a Markdown table, a row per size of run."""
    rng = np.random.default_rng(1)
    print("| problems | samples | right | geometric mean |\n|---|---|---|---|")
    for problems in (50, 110, 210):
        for samples in (1, 10):
            held = dict.fromkeys(TRUTHS, 0)
            for number in shown(range(runs), runs, f"runs of {problems} problems"):
                drawn = draws(run(rng, problems, samples), STATISTICS, f"{problems} {samples} {number}")
                for name, truth in TRUTHS.items():
                    ends = interval(drawn[name])
                    held[name] += ends is not None and ends[0] <= truth <= ends[1]
            shares = (f"{held[name] / runs:.1%}" for name in held)
            print(f"| {problems} | {samples} | {' | '.join(shares)} |")
    print(f"\n{runs} runs each; the chance of an interval is {math.sqrt(0.95 * 0.05 / runs):.1%} off by one sigma")


if __name__ == "__main__":
    main()
