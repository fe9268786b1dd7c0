"""Honest implementations stay within the limit, in any order of summation and with functions as coarse as CUDA's.

A few problems and seeds; ``python -m benchmarks.limit_shares`` takes all of them and hundreds.
"""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("numpy")

from benchmarks.limit_shares import MODES, Single, is_judged, measure  # noqa: E402
from benchmarks.meeting import meet  # noqa: E402
from benchmarks.summing import ORDERS, in_sequence, product  # noqa: E402
from kgbench.baselines.references.aten import chained  # noqa: E402
from kgbench.baselines.references.aten_index import index_put  # noqa: E402
from kgbench.baselines.references.aten_pointwise import silu  # noqa: E402
from kgbench.baselines.references.aten_reduce import matmul  # noqa: E402
from kgbench.baselines.references.cublas import product_sum  # noqa: E402
from kgbench.baselines.references.cublas_vectors import dot  # noqa: E402
from kgbench.baselines.references.vllm_norms import prepare_int8_rows  # noqa: E402
from kgbench.core.kinds import Phase  # noqa: E402
from kgbench.harness.verdict.compare import Limits, share_used  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.problem.calls import parse  # noqa: E402
from kgbench.problem.cases.expand import phase_cases  # noqa: E402
from kgbench.problem.model import CaseTemplate  # noqa: E402
from kgbench.problem.registry import Registry, load_problem  # noqa: E402

pytestmark = pytest.mark.torch
PATHS = Registry().paths
NEAR = (("aten/div", "Scalar"), ("aten/pairwise_distance", ""), ("vllm/rms_norm", ""), ("vllm/topk_softmax", ""))
"""Problems and overloads of which some call in a hundred was once."""
MEET = (("cublas/cublasCgemm_v2", ""), ("cublas/cublasCdotu_v2", ""), ("cublas/cublasCsymm_v2", ""), ("aten/mm", ""),
        ("aten/pairwise_distance", ""), ("aten/log_sigmoid_backward", "default"))  # fmt: skip
"""Problems of which one operand can be made another."""


@pytest.mark.in_turn("kgbench/harness/verdict/", "kgbench/baselines/references/", "benchmarks/", turns=5)
@pytest.mark.parametrize(("problem", "name"), NEAR)
def test_no_honest_implementation_is_called_wrong(problem: str, name: str) -> None:
    overload = next(each for each in load_problem(PATHS[problem]).overloads if each.name == name)
    assert is_judged(overload)
    for row in measure(problem, overload, range(4), 0, tuple(MODES)):
        assert row.calls > 20
        assert (row.wrong, row.case if row.wrong else "") == (0, ""), row.kind


def test_what_a_library_returns_is_measured_too() -> None:
    overload = load_problem(PATHS["aten/softmax"]).overloads[0]
    (row,) = measure("aten/softmax", overload, range(1), 0, ("library",))
    assert row.calls > 20
    assert row.wrong == 0, row.case
    assert row.share > 0.0


@pytest.mark.in_turn("kgbench/harness/verdict/", "kgbench/baselines/references/", "benchmarks/", turns=5)
@pytest.mark.parametrize(("problem", "name"), MEET)
def test_no_honest_implementation_is_called_wrong_where_an_operand_meets_itself(problem: str, name: str) -> None:
    overload = next(each for each in load_problem(PATHS[problem]).overloads if each.name == name)
    for row in measure(problem, overload, range(1), 0, tuple(ORDERS), itself=True):
        assert row.calls > 5
        assert (row.wrong, row.case if row.wrong else "") == (0, ""), row.kind
        assert row.share < 0.6, row.case


def test_operands_that_meet_are_alike() -> None:
    overload = load_problem(PATHS["aten/mm"]).overloads[0]
    judge = OverloadJudge(overload, torch.device("cpu"))
    template = CaseTemplate({}, 0, parse("((T([5, 7], f32), T([7, 3], f32, [1, 9])), {})"))
    (case,) = phase_cases(overload, Phase.CHECK, [template], overload.dtypes)
    call = judge.place(case, torch.Generator().manual_seed(0))
    assert meet(call)
    given = call.inputs.arguments()
    assert torch.equal(given["mat2"], given["self"].mT[:, :3])
    product = given["self"] @ given["mat2"]
    assert product[1, 1] == pytest.approx(float(given["self"][1].square().sum()))


@pytest.mark.parametrize("count", [60, 1000, 20_000])
def test_a_sum_in_order_stays_within_what_is_said_of_it(count: int) -> None:
    terms = torch.rand(200, count, generator=torch.Generator().manual_seed(count))
    right = terms.double().sum(1)
    off = ((in_sequence(terms.mT) - right) / right).abs().max() * 2.0**24
    # Five standard deviations of eight are not reached in 200 rows, and two are.
    assert 0.25 < float(off) / chained(count) < 0.65


@pytest.mark.parametrize("count", [40, 64, 1000, 4100])
def test_one_number_added_many_times_is_rounded_the_same_way_each_time(count: int) -> None:
    value, start = torch.randn(2, 2000, generator=torch.Generator().manual_seed(count))
    place = torch.arange(2000)
    places, terms = place.repeat(count), value.repeat(count)
    right = index_put(start.double(), [places], terms.double(), accumulate=True)
    limits = Limits("rounding", ulps=2)
    found = in_sequence(torch.cat((start[None], value.expand(count, -1))))
    assert share_used(found, right, limits) < 1
    if count < 4000:
        assert math.isinf(share_used(found - value, right, limits))


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_products_of_far_numbers_have_a_limit(size: float) -> None:
    left, right = size * torch.randn(2, 20, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    left[0, 0] = math.inf
    wanted, limits = matmul(left, right), Limits("accumulate", length=20)
    in_order = sum(left[:, each, None] * right[None, each] for each in reversed(range(20)))
    assert share_used(in_order, wanted, limits) < 0.5
    assert math.isinf(share_used(in_order * (1 + 1e-13), wanted, limits))


@pytest.mark.parametrize("real", [-90.0, -1e25])
def test_silu_of_a_complex_number_whose_power_overflows_is_zero_or_nan(real: float) -> None:
    wanted, limits = silu(torch.tensor([complex(real, 5.0)], dtype=torch.complex128)), Limits("rounding", ulps=4)
    for right in (0.0, math.nan):
        assert share_used(torch.tensor([complex(right, right)], dtype=torch.complex64), wanted, limits) < 1
    assert math.isinf(share_used(torch.tensor([complex(real, 5.0)], dtype=torch.complex64), wanted, limits))


def test_single_precision_is_what_references_compute_in() -> None:
    third = torch.tensor([1.0, 3.0])
    with Single():
        assert third.to(torch.float64).dtype == third.double().dtype == torch.float32
    with MODES["sequential"]():
        assert torch.sum(torch.tensor([2.0**24] + [1.0] * 8)).item() == 2.0**24
        assert torch.softmax(torch.zeros(4), 0).tolist() == [0.25] * 4
        assert torch.ones(2, 3, 4).mean((0, -1), keepdim=True).shape == (1, 3, 1)
    assert math.isclose(chained(1 << 20), chained(1 << 16))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("meets", ["itself", "another"])
def test_split_complex_products_stay_within_the_limit(order: str, meets: str) -> None:
    """Where a row meets itself, the squares of both parts are summed before one takes most of the other away."""
    generator = torch.Generator().manual_seed(7)
    count = 4096
    left = torch.randn(40, count, dtype=torch.complex64, generator=generator)
    right = left if meets == "itself" else torch.randn(40, count, dtype=torch.complex64, generator=generator)
    wide, other = left.to(torch.complex128), right.to(torch.complex128)
    start = torch.zeros(40, 40, dtype=torch.complex128)
    limits = Limits("accumulate", length=4 * count)
    found = product(left, right.mT, ORDERS[order])
    assert share_used(found, product_sum(1.0, wide, other.mT, 0.0, start), limits) < 0.5
    one = dot(wide[0], 1, other[0], 1)["result"]
    assert share_used(found[0, 0].reshape(1), one, limits) < 0.5


def test_a_wrong_product_of_a_row_with_itself_is_beyond_the_limit() -> None:
    left = torch.randn(8, 256, dtype=torch.complex64, generator=torch.Generator().manual_seed(7))
    wide, start = left.to(torch.complex128), torch.zeros(8, 8, dtype=torch.complex128)
    right = product_sum(1.0, wide, wide.mT, 0.0, start)
    coarse = torch.view_as_complex(
        torch.view_as_real(left).contiguous().view(torch.int32).bitwise_and(-8192).view(torch.float32)
    )
    assert math.isinf(share_used(coarse @ coarse.mT, right, Limits("accumulate", length=4 * 256)))
    without_a_term = (wide[:, 1:] @ wide[:, 1:].mT).to(torch.complex64)
    assert math.isinf(share_used(without_a_term, right, Limits("accumulate", length=4 * 256)))


def test_zero_points_of_int8_rows_are_what_float32_rounds_them_to() -> None:
    """Far from 0 the quotient's rounding decides next to a tie, so that rows keep a distance that grows."""
    drawn = 500 + 0.1 * torch.randn(600, 4, 192, generator=torch.Generator().manual_seed(1))
    for rows in drawn:
        prepare_int8_rows({"input": rows}, {"asymmetric": True, "zero_row": False}, torch.Generator())
        low, high = rows.aminmax(dim=-1)
        exact = -128 - 255 * low.double() / (high.double() - low.double())
        assert torch.equal((-128 - low / ((high - low) / 255)).round().double(), exact.round())
