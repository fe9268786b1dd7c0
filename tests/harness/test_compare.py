"""Limits from the arithmetic: honest rounding passes with room, a shortened mantissa does not, special values match."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.baselines.expected import Expected  # noqa: E402
from kgbench.core.details.values import Mismatch, RootMeanSquare  # noqa: E402
from kgbench.harness.verdict.compare import PIECES, Limits, compare  # noqa: E402
from kgbench.harness.verdict.draws import draw  # noqa: E402
from kgbench.harness.verdict.narrow_dtypes import stored_as  # noqa: E402

NAN, INF = float("nan"), float("inf")


def product(k: int, rounded: torch.dtype | None = None, size: int = 128) -> tuple[torch.Tensor, Expected]:
    """A float32 product of normal matrices, its inputs optionally rounded, and what is correct."""
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
    assert isinstance(mismatch, RootMeanSquare)


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


@pytest.mark.parametrize(
    ("got", "wanted", "right"),
    [
        (complex(INF, 2.0), complex(INF, 2.0 + 2**-21), True),
        (complex(INF, 2.0), complex(INF, 2.0 + 2**-18), False),
        (complex(2.0, -INF), complex(2.0, -INF), True),
        (complex(2.0, -INF), complex(2.0, INF), False),
        (complex(2.0, INF), complex(NAN, INF), False),
        (complex(INF, INF), complex(INF, 2.0), False),
        (complex(3e38, 2.0), complex(INF, 2.0), False),
        (complex(INF, 2.0), complex(1e39, 2.0 + 2**-21), True),
        (complex(INF, 2.0), complex(1e39, 2.0 + 2**-18), False),
        (complex(1.0, NAN), complex(NAN, INF), True),  # both are NaN
    ],
)
def test_the_finite_part_of_an_infinite_number_has_a_limit_of_its_own(
    got: complex, wanted: complex, right: bool
) -> None:
    value = torch.tensor([wanted], dtype=torch.complex128)
    found = compare("x", torch.tensor([got], dtype=torch.complex64), Expected(value), Limits("rounding"))
    assert (found is None) is right


def test_special_complex_numbers_have_either_part_special() -> None:
    values = draw("special", (), (4000,), torch.complex64, torch.Generator().manual_seed(1))
    for part, other in ((values.real, values.imag), (values.imag, values.real)):
        assert 10 < int((torch.isinf(part) & torch.isfinite(other) & (other != 0)).sum()) < 100


def test_a_value_beyond_the_outputs_range_may_be_infinite() -> None:
    right = Expected(torch.tensor([1e6], dtype=torch.float64))
    assert compare("x", torch.tensor([INF], dtype=torch.float16), right, Limits("rounding")) is None


@pytest.mark.parametrize(("value", "right"), [(65519.0, True), (-65519.0, False), (65000.0, False)])
def test_a_value_within_its_limit_of_the_end_may_be_infinite(value: float, right: bool) -> None:
    wanted = Expected(torch.tensor([value], dtype=torch.float64))
    found = compare("x", torch.tensor([INF], dtype=torch.float16), wanted, Limits("rounding"))
    assert (found is None) is right


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


QUANTIZE = Limits("quantize", ulps=4, compute="float32")
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def is_correct(code: float, value: float, dtype: torch.dtype, magnitude: float | None = None) -> bool:
    scale = None if magnitude is None else torch.tensor([magnitude], dtype=torch.float64)
    expected = Expected(torch.tensor([value], dtype=torch.float64), scale)
    return compare("q", torch.tensor([code]).to(dtype), expected, QUANTIZE) is None


@pytest.mark.parametrize(
    ("code", "value", "dtype", "right"),
    [
        (2, 2.5, torch.int8, True),  # of a tie both
        (3, 2.5, torch.int8, True),
        (-2, -2.5, torch.int8, True),
        (2, 2.4999, torch.int8, True),
        (3, 2.4999, torch.int8, False),
        (3, 2.4999999, torch.int8, True),  # a tie to float32
        (4, 3.2, torch.int8, False),  # one step off, far from a tie
        (2, 3.2, torch.int8, False),
        (127, 127.9, torch.int8, True),
        (127, 1e9, torch.int8, True),
        (126, 1e9, torch.int8, False),
        (-128, -1e9, torch.int8, True),
        (-127, -1e9, torch.int8, False),
        (127, INF, torch.int8, True),
        (126, INF, torch.int8, False),
        (-128, -INF, torch.int8, True),
        (5, NAN, torch.int8, True),
        (0, -3.0, torch.uint8, True),
        (255, 255.4, torch.uint8, True),
        (254, 255.4, torch.uint8, False),
        (70001, 70000.6, torch.int32, True),
        (70000, 70000.6, torch.int32, False),
        (1.0, 1.0, E4M3, True),
        (1.125, 1.0625, E4M3, True),
        (1.0, 1.0625, E4M3, True),
        (1.125, 1.06, E4M3, False),
        (1.0, 0.97, E4M3, True),  # nearer than 0.9375
        (0.9375, 0.97, E4M3, False),
        (448, 1e6, E4M3, True),
        (416, 1e6, E4M3, False),
        (448, INF, E4M3, True),
        (NAN, 1e6, E4M3, False),
        (NAN, NAN, E4M3, True),
        (0, NAN, E4M3, False),
        (2.0**-9, 1.4 * 2.0**-9, E4M3, True),  # denormals stand a step of 2^-9 apart
        (2.0**-8, 1.4 * 2.0**-9, E4M3, False),
        (0, 0.4 * 2.0**-9, E4M3, True),
        (2.0**-9, 0.4 * 2.0**-9, E4M3, False),
        (-1.875, -1.9, E4M3, True),
        (-2.0, -1.9, E4M3, False),
        (57344, 1e6, E5M2, True),
        (INF, 1e6, E5M2, False),
        (-57344, -INF, E5M2, True),
        (1.25, 1.125, E5M2, True),
        (1.25, 1.12, E5M2, False),
        (2.0**-16, 1.4 * 2.0**-16, E5M2, True),
        (2.0**-15, 1.4 * 2.0**-16, E5M2, False),
    ],
)
def test_a_code_is_right_that_is_nearest_to_what_rounding_may_leave(
    code: float, value: float, dtype: torch.dtype, right: bool
) -> None:
    assert is_correct(code, value, dtype) is right


def test_a_code_s_slack_is_a_multiple_of_the_magnitude() -> None:
    assert not is_correct(3, 2.499, torch.int8)
    assert is_correct(3, 2.499, torch.int8, magnitude=5000)


def test_every_fp8_code_is_its_own_nearest_and_its_neighbour_is_wrong() -> None:
    for dtype in (E4M3, E5M2):
        codes = torch.arange(256, dtype=torch.uint8).view(dtype).to(torch.float64)
        codes = codes[torch.isfinite(codes)].unique()
        assert compare("q", codes.to(dtype), Expected(codes), QUANTIZE) is None
        found = compare("q", codes[1:].to(dtype), Expected(codes[:-1]), QUANTIZE)
        assert found is not None
        assert found.wrong_share == 1.0


def test_beside_codes_floats_round_and_whole_numbers_are_exact() -> None:
    scale = Expected(torch.tensor([3.0], dtype=torch.float64))
    assert compare("s", torch.tensor([3.0 + 2**-21]), scale, QUANTIZE) is None
    assert compare("s", torch.tensor([3.0 + 2**-17]), scale, QUANTIZE) is not None
    words = Expected(torch.tensor([7]))
    assert compare("w", torch.tensor([7], dtype=torch.int32), words, QUANTIZE) is None
    assert compare("w", torch.tensor([8], dtype=torch.int32), words, QUANTIZE) is not None


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("rule", ["exact", "rounding"])
def test_fp8_is_judged_by_the_other_rules_too(dtype: torch.dtype, rule: str) -> None:
    value = torch.tensor([0.0, 1.0, NAN, -448.0, 2.0**-9], dtype=torch.float64)
    got = value.to(dtype)
    assert compare("x", got, Expected(value), Limits(rule)) is None
    wrong = got.clone()
    wrong[1] = torch.tensor(1.5).to(dtype)
    found = compare("x", wrong, Expected(value), Limits(rule))
    assert found is not None
    assert (found.index, found.got, found.dtype) == ((1,), "1.5", str(dtype).removeprefix("torch."))
    assert compare("x", value.nan_to_num(nan=0.0).to(dtype), Expected(value), Limits(rule)) is not None


def test_what_is_stored_saturates_in_every_version_of_torch() -> None:
    value = torch.tensor([1e9, -1e9, INF, 2.5, -300.0], dtype=torch.float64)
    assert stored_as(value, E4M3).to(torch.float64).tolist() == [448, -448, 448, 2.5, -288]
    assert stored_as(value, E5M2).to(torch.float64).tolist() == [57344, -57344, 57344, 2.5, -320]
    assert stored_as(value, torch.int8).tolist() == [127, -128, 127, 2, -128]
    assert stored_as(torch.tensor([300]), torch.uint8).tolist() == [44]


def described(found: object) -> object:
    """The difference, its figures to six digits: sums over pieces round otherwise."""
    return found if not isinstance(found, RootMeanSquare) else (f"{found.error:.6g}", f"{found.limit:.6g}")


@pytest.mark.parametrize("limits", [Limits("accumulate", length=64), Limits("rounding"), Limits("exact")])
@pytest.mark.parametrize("spoilt", [(), (70,), (3, 70, 16_383), "drifted"])
def test_an_output_in_pieces_is_judged_as_a_whole(
    limits: Limits, spoilt: tuple[int, ...] | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    got, right = product(64)
    got = right.value.float() if limits.rule == "exact" else got
    if spoilt == "drifted":
        assert right.magnitude is not None
        got = (got.double() + 40 * 2.0**-24 * right.magnitude).float()
    else:
        got.view(-1)[list(spoilt)] += 1
    if limits.rule == "exact" and not spoilt:
        right = Expected(got.double())
    columns = Expected(right.value.T, None if right.magnitude is None else right.magnitude.T)
    whole = [compare("C", got, right, limits), compare("C", got.T, columns, limits)]
    monkeypatch.setitem(PIECES, "cpu", 100)
    pieces = [compare("C", got, right, limits), compare("C", got.T, columns, limits)]
    assert [described(each) for each in pieces] == [described(each) for each in whole]


def test_of_two_correct_outputs_each_piece_may_equal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = torch.arange(300.0), torch.arange(300.0) + 5
    got = torch.where(torch.arange(300) % 3 == 0, one, other)
    right = Expected(one.double(), also=Expected(other.double()))
    monkeypatch.setitem(PIECES, "cpu", 64)
    assert compare("C", got, right, Limits("rounding")) is None
    got[299] = 7.0
    mismatch = compare("C", got, right, Limits("rounding"))
    assert isinstance(mismatch, Mismatch)
    assert mismatch.index == (299,)
    assert mismatch.wrong_share == 1 / 300
