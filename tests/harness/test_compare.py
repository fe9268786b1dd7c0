"""Limits from the arithmetic: honest rounding passes with room, a shortened mantissa does not, special values match."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.baselines.expected import Expected  # noqa: E402
from kgbench.harness.compare import Limits, compare  # noqa: E402

NAN, INF = float("nan"), float("inf")


def product(k: int, rounded: torch.dtype | None = None, size: int = 128) -> tuple[torch.Tensor, Expected]:
    """A float32 product of normal matrices, its inputs optionally rounded, and what is right."""
    generator = torch.Generator().manual_seed(k)
    a = torch.randn(size, k, generator=generator)
    b = torch.randn(k, size, generator=generator)
    right = Expected(a.double() @ b.double(), ((a.double() ** 2) @ (b.double() ** 2)).sqrt())
    if rounded is not None:
        a, b = a.to(rounded).float(), b.to(rounded).float()
    return a @ b, right


@pytest.mark.parametrize("k", [1, 64, 1024, 8192])
def test_an_honest_float32_product_passes(k: int) -> None:
    got, right = product(k)
    assert compare("C", got, right, Limits("accumulate", length=k)) is None


@pytest.mark.parametrize("k", [64, 1024, 8192])
@pytest.mark.parametrize("rounded", [torch.float16, torch.bfloat16])
def test_rounded_inputs_fail(k: int, rounded: torch.dtype) -> None:
    got, right = product(k, rounded)
    assert compare("C", got, right, Limits("accumulate", length=k)) is not None


def test_a_small_error_everywhere_fails_by_its_root_mean_square() -> None:
    got, right = product(1024)
    assert right.magnitude is not None
    eps = 2.0**-24
    drifted = got.double() + 100 * eps * right.magnitude
    mismatch = compare("C", drifted.float(), right, Limits("accumulate", length=1024))
    assert mismatch is not None
    assert "root mean square" in mismatch.got


@pytest.mark.parametrize(
    ("got", "wanted", "right"),
    [
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, INF, True),
        (INF, -INF, False),
        (INF, 1.0, False),
        (3e38, INF, False),
        (-0.0, 0.0, True),
        (1.0 + 2**-22, 1.0, True),
        (1.0 + 2**-19, 1.0, False),
    ],
)
def test_special_values(got: float, wanted: float, right: bool) -> None:
    found = compare("x", torch.tensor([got]), Expected(torch.tensor([wanted], dtype=torch.float64)), Limits("rounding"))
    assert (found is None) is right


def test_a_value_beyond_the_outputs_range_may_be_infinite() -> None:
    right = Expected(torch.tensor([1e6], dtype=torch.float64))
    assert compare("x", torch.tensor([INF], dtype=torch.float16), right, Limits("rounding")) is None


def test_exact_cases_take_no_error_at_all() -> None:
    right = Expected(torch.tensor([3.0], dtype=torch.float64))
    assert compare("x", torch.tensor([3.0]), right, Limits("accumulate", exact=True)) is None
    near = torch.tensor([math.nextafter(3.0, 4.0)], dtype=torch.float64).float() + 2**-22
    assert compare("x", near, right, Limits("accumulate", exact=True)) is not None


def test_integers_are_exact() -> None:
    right = Expected(torch.tensor([2**40]))
    assert compare("x", torch.tensor([2**40]), right, Limits("rounding")) is None
    assert compare("x", torch.tensor([2**40 + 1]), right, Limits("rounding")) is not None


def test_a_mismatch_says_where_and_how_much() -> None:
    got = torch.zeros(4, 5)
    wanted = torch.zeros(4, 5, dtype=torch.float64)
    wanted[2, 3] = 1.5
    found = compare("out", got, Expected(wanted), Limits("rounding"))
    assert found is not None
    assert (found.output, found.index, found.got, found.wanted) == ("out", (2, 3), "0", "1.5")
    assert found.wrong_share == 1 / 20
    assert found.shape == (4, 5)
