"""Honest implementations of cuBLAS problems stay well inside the limits: what rounds once, in another order, or less.

A fifth of the problems is run, always the same; KGBENCH_HONEST=1 runs all. ``python -m benchmarks.rounding`` prints the
shares.
"""

from __future__ import annotations

import os
import random

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("numpy")

from benchmarks.rounding import KINDS, Summed, shares  # noqa: E402
from benchmarks.summing import in_blocks, in_pairs, in_sequence  # noqa: E402
from kgbench.baselines.expected import Expected  # noqa: E402
from kgbench.harness.verdict.compare import Limits, share_used  # noqa: E402
from kgbench.problem.registry import Registry, load_problem  # noqa: E402

pytestmark = pytest.mark.torch
SHARE = float(os.environ.get("KGBENCH_HONEST", "0.2"))
PATHS = Registry().paths
BLAS = Registry().select(sources=("cublas",))
MOST = 0.5


@pytest.mark.parametrize("problem", random.Random("honest").sample(BLAS, max(1, round(SHARE * len(BLAS)))))
def test_no_honest_implementation_uses_half_of_the_limit(problem: str) -> None:
    used = shares(load_problem(PATHS[problem]).overloads[0])
    assert {"rounded", "sequential", "blocked", "paired"} <= set(used) <= set(KINDS)
    assert {kind: share for kind, share in used.items() if not share < MOST} == {}


def test_the_share_is_of_the_limit() -> None:
    right = Expected(torch.full((3,), 1.0, dtype=torch.float64))
    rounding = Limits("rounding", ulps=4.0)  # 8 units roundoff of 2 ** -24
    got = torch.tensor([1.0, 1.0, 1.0 + 2.0**-22])
    assert share_used(got, right, rounding) == pytest.approx(0.5, rel=1e-6)
    assert share_used(got - 2.0**-20, right, rounding) == float("inf")
    assert share_used(got, right, Limits("exact", exact=True)) == float("inf")
    assert share_used(torch.ones(3), right, Limits("exact", exact=True)) == 0.0


def test_the_share_counts_the_root_mean_square() -> None:
    right = Expected(torch.full((100,), 1.0, dtype=torch.float64))
    got = torch.full((100,), 1.0 + 8 * 2.0**-24)
    # Of an element 8 of 96 units are used, of the root mean square 8 of 16.
    assert share_used(got, right, Limits("accumulate", length=1.0)) == pytest.approx(0.5, rel=1e-6)


def test_terms_are_added_one_after_the_other_or_in_blocks() -> None:
    terms = torch.tensor([2.0**24, *[1.0] * 63])
    with Summed(in_sequence):
        # Each 1 is lost in float32, one at a time.
        assert terms.sum().item() == 2.0**24
        assert (terms[None] @ torch.ones(64, 1)).item() == 2.0**24
    with Summed(in_blocks):
        assert terms.sum().item() == 2.0**24 + 32
        assert (terms[None] @ torch.ones(64, 1)).item() == 2.0**24 + 32
    with Summed(in_pairs):
        assert terms.sum().item() == 2.0**24 + 62
