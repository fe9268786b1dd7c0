"""Subnormal numbers may be zeros where a problem says so, in arguments and in results, and nowhere else."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines.expected import Expected  # noqa: E402
from kgbench.baselines.references.aten_reduce import div  # noqa: E402
from kgbench.harness.verdict.compare import Limits, compare, share_used  # noqa: E402
from kgbench.harness.verdict.subnormals import with_zeros  # noqa: E402
from kgbench.problem.registry import Registry, load_problem  # noqa: E402

pytestmark = pytest.mark.torch
PATHS = Registry().paths
SMALL = 1e-40


def judged(got: list[float], given: list[float], dtype: torch.dtype = torch.float32, rule: str = "rounding") -> bool:
    """Whether an output of floor is right where subnormal numbers may be zeros."""

    def answer(arguments: dict[str, torch.Tensor]) -> dict[str, Expected]:
        return {"return": Expected(torch.floor(arguments["x"].double()))}

    arguments = {"x": torch.tensor(given, dtype=dtype)}
    outputs = {"return": torch.tensor(got, dtype=dtype)}
    found = with_zeros(answer(arguments), outputs, arguments, answer)["return"]
    return compare("return", outputs["return"], found, Limits(rule)) is None


def test_arguments_may_be_zero_element_by_element() -> None:
    assert judged([-1.0, -0.0, 2.0], [-SMALL, -SMALL, 2.5])
    assert judged([-1.0, -0.0, 2.0], [-SMALL, -SMALL, 2.5], rule="exact")
    assert not judged([-1.0, -0.0, 3.0], [-SMALL, -SMALL, 2.5])
    assert not judged([-0.0], [-1e-37])
    assert not judged([1.0], [-SMALL])


def test_numbers_of_float64_and_float16_are_kept() -> None:
    assert judged([-1.0], [-1e-310], dtype=torch.float64)
    assert not judged([-0.0], [-1e-310], dtype=torch.float64)
    assert not judged([-0.0], [-1e-6], dtype=torch.float16)
    assert judged([-0.0], [-SMALL], dtype=torch.bfloat16)


def test_results_may_be_zero() -> None:
    outputs = {"return": torch.tensor([0.0, SMALL, 0.0])}
    right = {"return": Expected(torch.tensor([SMALL, SMALL, 2e-38], dtype=torch.float64))}
    found = with_zeros(right, outputs, {}, lambda arguments: right)["return"]
    mismatch = compare("return", outputs["return"], found, Limits("rounding"))
    assert mismatch is not None
    assert mismatch.index == (2,)


def test_either_of_two_right_outputs_is_right() -> None:
    one, other = torch.tensor([1.0, 2.0, float("inf")]), torch.tensor([1.0, 3.0, float("nan")])
    right = Expected(one.double(), also=Expected(other.double()))
    for got in (one, other, torch.tensor([1.0, 3.0, float("inf")])):
        assert compare("x", got, right, Limits("rounding")) is None
        assert share_used(got, right, Limits("rounding")) == 0.0
    assert compare("x", torch.tensor([1.0, 2.5, float("inf")]), right, Limits("rounding")) is not None


@pytest.mark.parametrize(
    ("problem", "may"),
    [("aten/floor", True), ("aten/div", True), ("aten/_index_put_impl_", True), ("cublas/cublasSgemm_v2", True),
     ("aten/rsqrt", False), ("aten/neg", False), ("aten/eq", False), ("aten/copy_", False)],
)  # fmt: skip
def test_a_problem_says_whether_they_may(problem: str, may: bool) -> None:
    assert load_problem(PATHS[problem]).overloads[0].subnormals_may_be_zero is may


def test_a_quotient_may_be_zero_before_it_is_rounded_down() -> None:
    def right(got: float, dtype: torch.dtype, above: float, below: float) -> bool:
        given = [torch.tensor([each], dtype=dtype) for each in (above, below)]
        expected = div(given[0].double(), given[1].double(), rounding_mode="floor")
        return compare("return", torch.tensor([got], dtype=dtype), expected, Limits("rounding", ulps=2)) is None

    assert right(-1.0, torch.float32, 1.0, -3e38)
    assert right(-0.0, torch.float32, 1.0, -3e38)
    assert not right(-0.0, torch.float32, 1.0, -3e37)
    assert right(-1.0, torch.float64, 1.1, -1e39)
    assert not right(-0.0, torch.float64, 1.1, -1e39)
