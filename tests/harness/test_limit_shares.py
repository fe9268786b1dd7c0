"""Honest implementations stay within the limit, in any order of summation and with functions as coarse as CUDA's.

A few problems and seeds; ``python -m benchmarks.limit_shares`` takes all of them and hundreds.
"""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("numpy")

from benchmarks.limit_shares import Sequential, Single, is_judged, measure, one_by_one  # noqa: E402
from kgbench.baselines.references.aten import chained  # noqa: E402
from kgbench.problem.registry import Registry, load_problem  # noqa: E402

pytestmark = pytest.mark.torch
PATHS = Registry().paths
NEAR = (("aten/div", "Scalar"), ("aten/pairwise_distance", ""), ("vllm/rms_norm", ""), ("vllm/topk_softmax", ""))
"""Problems and overloads of which some call in a hundred was once."""


@pytest.mark.parametrize(("problem", "name"), NEAR)
def test_no_honest_implementation_is_called_wrong(problem: str, name: str) -> None:
    overload = next(each for each in load_problem(PATHS[problem]).overloads if each.name == name)
    assert is_judged(overload)
    for row in measure(problem, overload, range(4), 0, ("plain", "coarse", "sequential")):
        assert row.calls > 20
        assert (row.wrong, row.case if row.wrong else "") == (0, ""), row.kind


@pytest.mark.parametrize("count", [60, 1000, 20_000])
def test_a_sum_in_order_stays_within_what_is_said_of_it(count: int) -> None:
    terms = torch.rand(200, count, generator=torch.Generator().manual_seed(count))
    right = terms.double().sum(1)
    off = ((one_by_one(terms, 1) - right) / right).abs().max() * 2.0**24
    # Five standard deviations of eight are not reached in 200 rows, and two are.
    assert 0.25 < float(off) / chained(count) < 0.65


def test_single_precision_is_what_references_compute_in() -> None:
    third = torch.tensor([1.0, 3.0])
    with Single():
        assert third.to(torch.float64).dtype == third.double().dtype == torch.float32
    with Sequential():
        assert torch.sum(torch.tensor([2.0**24] + [1.0] * 8)).item() == 2.0**24
        assert torch.softmax(torch.zeros(4), 0).tolist() == [0.25] * 4
        assert torch.ones(2, 3, 4).mean((0, -1), keepdim=True).shape == (1, 3, 1)
    assert math.isclose(chained(1 << 20), chained(1 << 16))
