"""Kinds of calls by which kernels that had passed turned out wrong: each fails the kernel that is wrong in that way.

Calls of 2^31 elements are made small, those beyond 65,535 in some count are made as they stand.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines.references.cublas import product_sum  # noqa: E402
from kgbench.core.kinds import Phase  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.verdicts import PASSED, Verdict  # noqa: E402
from kgbench.harness.verdict.draws import draw  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.verdict.narrow_dtypes import stored_as  # noqa: E402
from kgbench.harness.verdict.placed_call import PlacedCall  # noqa: E402
from kgbench.harness.verdict.reference import values_only  # noqa: E402
from kgbench.problem.cases import Case, expand_cases  # noqa: E402
from kgbench.problem.cases.expand import phase_cases  # noqa: E402
from kgbench.problem.model import Access, CaseTemplate, Overload  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from tests.harness.test_large_cases import first, made_small, numbers_of  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
COUNT = 65_535
"""Blocks that a grid takes in its second and third dimension."""
BESIDE = ("add_", "copy_", "fmax", "log_sigmoid_backward", "soft_margin_loss")
"""A problem of each family with two rows beside a vector, or of which one operand is a row for both."""
OUTER = ("amin", "argmax", "cumsum", "diff", "mean", "pairwise_distance", "renorm", "softmax", "sum")
"""Problems with 2^31 elements of which the first and the last differ from the others."""
COLUMNS = (
    *(f"aten/{name}" for name in ("_softmax", "amin", "cat", "cumsum", "diff", "embedding", "index", "index_select",
                                  "mean", "renorm", "softmax", "stack", "sum")),
    *(f"aten/{name}" for name in ("bmm", "linear", "matmul", "mm")),
    "vllm/moe_sum", "vllm/shuffle_rows", "cublas/cublasSgemm_v2", "cublas/cublasHgemmBatched",
)  # fmt: skip
"""Problems with 2^31 columns of which each follows from the same column of the operands, or as many rows."""
CACHES = ("copy_blocks", "copy_blocks_mla", "reshape_and_cache_flash", "swap_blocks")
"""Problems with a cache that has a block of 2^31 elements, or offsets."""
IN_TURN = pytest.mark.in_turn("kgbench/harness/verdict/", "kgbench/baselines/references/", "problems/vllm/", turns=4)
COUNTS = [
    pytest.param(name, number, marks=IN_TURN)
    for name, number in (
        *(("convert_vertical_slash_indexes", number) for number in (1, 2, 3)),
        ("moe_lora_align_block_size", 2),
        ("paged_attention_v2", 2),
        *(("selective_scan_fwd", number) for number in (2, 4)),
    )
]
"""Calls of less than 0.5 GB, by their numbers, in which what is written has more than COUNT in some dimension."""
WORK_SPACE = ("exp_sums", "max_logits", "tmp_out")
"""Written arguments of which nothing is judged."""


def placed(overload: Overload, case: Case) -> tuple[OverloadJudge, PlacedCall, dict[str, Any]]:
    """The call, and its right outputs."""
    judge = OverloadJudge(overload, CPU)
    call = judge.place(case, torch.Generator().manual_seed(3))
    return judge, call, answered(judge, call, call.inputs.arguments())


def answered(judge: OverloadJudge, call: PlacedCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the reference says of arguments, all rows of it, in the outputs' dtypes."""
    dtypes = {spec.name: spec.dtype for spec in call.inputs.bound.specs}
    names = ["return"] if len(call.specs) == 1 else [f"return[{at}]" for at in range(len(call.specs))]
    dtypes |= {name: spec.dtype for name, spec in zip(names, call.specs, strict=True)}
    written = tuple(spec.name for spec in call.inputs.bound.specs if spec.access != Access.READ)
    answers = values_only(judge.reference.answers(arguments, written))
    return {name: stored_as(each.value, getattr(torch, dtypes[name])) for name, each in answers.items()}


def judged(judge: OverloadJudge, call: PlacedCall, outputs: dict[str, Any]) -> Verdict:
    return judge.values(call, {name: value.clone() for name, value in outputs.items()})


def small(overload: Overload, template: CaseTemplate) -> Case:
    (case,) = phase_cases(overload, Phase.LARGE, [made_small(template)], overload.dtypes)
    return case


@pytest.mark.parametrize("problem", BESIDE)
def test_the_last_elements_of_a_row_beside_a_vector_are_judged(problem_path: Path, problem: str) -> None:
    overload = first(problem_path, f"aten/{problem}")
    template = overload.large[-1]
    assert template.variables["samples"] == 1
    judge, call, outputs = placed(overload, small(overload, template))
    assert judged(judge, call, outputs) is PASSED
    ((name, right),) = outputs.items()
    assert right.shape[0] == 2
    # As a kernel leaves them whose first column of a block is computed in 32 bits.
    right[1, -64:] = 99 if right.dtype == torch.int8 else math.nan
    assert judged(judge, call, {name: right}).outcome is Outcome.WRONG_VALUE


RESULTS = ("acosh", "affine_grid_generator", "amin", "fmax", "renorm", "rot90", "select_backward", "square")
"""Problems of different forms whose result may go to a tensor with offsets beyond 2^31."""


@pytest.mark.parametrize("problem", RESULTS)
def test_a_result_beyond_32_bits_is_judged_where_it_belongs(problem_path: Path, problem: str) -> None:
    """As a kernel leaves it whose offset in the result is computed in 32 bits: the elements there are as before."""
    (overload,) = (each for each in load_problem(problem_path / f"aten/{problem}.yaml").judged if each.large[-1:] and
                   "'out'" in each.large[-1].call.text)  # fmt: skip
    judge, call, outputs = placed(overload, small(overload, overload.large[-1]))
    (spec,) = (each for each in call.inputs.bound.specs if each.access is Access.WRITE)
    assert not spec.contiguous
    assert judged(judge, call, outputs) is PASSED
    ((name, right),) = outputs.items()
    far = max(range(right.ndim), key=lambda at: right.shape[at] > 1 and spec.strides[at])
    right.narrow(far, right.shape[far] - 1, 1).fill_(math.nan)
    assert judged(judge, call, {name: right}).outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("problem", COLUMNS)
def test_the_last_columns_are_judged(problem_path: Path, problem: str) -> None:
    """As a kernel leaves them that computes a block's first column, or the number of blocks, in 32 bits."""
    overloads = load_problem(problem_path / f"{problem}.yaml").judged
    templates = [(overload, each) for overload in overloads for each in overload.large if is_long(each)]
    assert templates
    for overload, template in templates:
        judge, call, outputs = placed(overload, small(overload, template))
        assert judged(judge, call, outputs) is PASSED
        ((name, right),) = outputs.items()
        long = max(range(right.ndim), key=lambda at: right.shape[at])
        right.narrow(long, right.shape[long] - 64, 64).fill_(math.nan if right.is_floating_point() else 99)
        assert judged(judge, call, {name: right}).outcome is Outcome.WRONG_VALUE


def is_long(template: CaseTemplate) -> bool:
    """2^31 rows or columns, or close to it, that are sampled."""
    is_outer = template.variables.get("values") == "outer"  # of which the first and the last decide
    return "samples" in template.variables and not is_outer and max(numbers_of(template)) >= 2**31 - 1


@pytest.mark.parametrize("problem", OUTER)
def test_what_the_last_element_decides_is_judged(problem_path: Path, problem: str) -> None:
    """A kernel that does not look at the last places, as one whose last part begins at a negative number."""
    overload = first(problem_path, f"aten/{problem}")
    templates = [each for each in overload.large if each.variables.get("values") == "outer"]
    assert templates
    for template in templates:
        judge, call, outputs = placed(overload, small(overload, template))
        assert judged(judge, call, outputs) is PASSED
        arguments = call.inputs.arguments()
        name = next(name for name, each in arguments.items() if isinstance(each, torch.Tensor))
        seen = arguments[name].clone()
        seen[..., -64:] = seen[..., -65:-64].clone()
        wrong = answered(judge, call, {**arguments, name: seen})
        assert judged(judge, call, wrong).outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize(("problem", "number"), COUNTS)
def test_what_lies_beyond_the_blocks_of_a_grid_is_judged(problem_path: Path, problem: str, number: int) -> None:
    """A kernel with a count in the second dimension of its grid, that goes on where the launch fails, leaves it out."""
    overload = first(problem_path, f"vllm/{problem}")
    cases = [case for case in expand_cases(overload, "cuda", 80.0, "s") if case.phase == Phase.LARGE]
    judge, call, outputs = placed(overload, cases[number - 1])
    assert judged(judge, call, outputs) is PASSED
    sizes = [(name, at, size) for name, each in outputs.items() for at, size in enumerate(each.shape)]
    long = [(name, at) for name, at, size in sizes if size > COUNT and name not in WORK_SPACE]
    assert long
    for name, at in long:
        wrong = outputs[name].clone()
        wrong.narrow(at, COUNT, 1).fill_(-7 if wrong.dtype == torch.int32 else math.nan)
        assert judged(judge, call, {**outputs, name: wrong}).outcome is Outcome.WRONG_VALUE, name


@pytest.mark.parametrize("problem", ["cublas/cublasCsymm_v2", "cublas/cublasCsymv_v2"])
def test_an_infinite_complex_sum_may_be_nan_and_its_neighbours_may_not(problem_path: Path, problem: str) -> None:
    overload = first(problem_path, problem)
    cases = expand_cases(overload, "cpu", None, "s")
    case = next(each for each in cases if each.variables["values"] == "inf_a")
    judge, call, outputs = placed(overload, case)
    ((name, right),) = outputs.items()
    lost = ~torch.isfinite(right)
    assert bool(lost.any())
    assert not bool(lost.all())
    assert judged(judge, call, {name: right}) is PASSED
    for value, outcome in ((math.nan, None), (1.0, Outcome.WRONG_VALUE)):
        verdict = judged(judge, call, {name: torch.where(lost, torch.full_like(right, value), right)})
        assert verdict.outcome is outcome if outcome else verdict is PASSED
    spread = right.clone().flatten()
    spread[(~lost).flatten().nonzero()[0]] = math.nan
    assert judged(judge, call, {name: spread.reshape(right.shape)}).outcome is Outcome.WRONG_VALUE


def test_of_an_infinite_sum_the_infinity_is_right_beside_nan() -> None:
    left = torch.tensor([[math.inf + 0j, 1.0], [1.0, 2.0]], dtype=torch.complex128)
    right = torch.tensor([[2.0 + 1j], [1.0]], dtype=torch.complex128)
    found = product_sum(1 + 0j, left, right, 0j, torch.zeros_like(right))
    assert found.also is not None
    assert torch.isnan(found.value[0]).all()
    assert torch.isinf(torch.view_as_real(found.also.value)[0]).all()
    assert torch.equal(found.value[1], found.also.value[1])
    assert product_sum(2 + 1j, left, right, 0j, torch.zeros_like(right)).also is None, "one part is NaN in any order"
    assert product_sum(1.0, left.real, right.real, 0.0, torch.zeros_like(right.real)).also is None


@pytest.mark.parametrize("problem", ["cublasDsbmv_v2", "cublasDsyr2_v2", "cublasSsyrk_v2", "cublasStbmv_v2"])
def test_infinities_of_one_operand_reach_some_elements_alone(problem_path: Path, problem: str) -> None:
    """Of real numbers: a kernel that multiplies zeros of a mask with them makes them NaN, or others."""
    overload = first(problem_path, f"cublas/{problem}")
    sets = {"inf_a", "inf_x", "inf_y", "inf_c"}
    cases = [each for each in expand_cases(overload, "cpu", None, "s") if each.variables["values"] in sets]
    assert len(cases) > 1
    infinite = 0
    for case in cases:
        judge, call, outputs = placed(overload, case)
        ((name, right),) = outputs.items()
        assert judged(judge, call, {name: right}) is PASSED
        live = judge.live(call, name)
        inside = torch.ones_like(right, dtype=torch.bool) if live is None else live
        places = torch.isinf(right) & inside
        infinite += int(places.sum())
        assert bool((torch.isfinite(right) & inside).any())
        if bool(places.any()):
            wrong = torch.where(places, torch.full_like(right, math.nan), right)
            assert judged(judge, call, {name: wrong}).outcome is Outcome.WRONG_VALUE
    assert infinite


@pytest.mark.parametrize("problem", CACHES)
def test_the_end_of_a_block_of_a_cache_is_judged(problem_path: Path, problem: str) -> None:
    """A kernel whose last chunk of a block, or last head of it, begins at a negative number leaves that as it was."""
    overload = first(problem_path, f"vllm/{problem}")
    (template,) = [each for each in overload.large if "samples" in each.variables]
    judge, call, outputs = placed(overload, small(overload, template))
    assert judged(judge, call, outputs) is PASSED
    found = {name: value.clone() for name, value in call.inputs.arguments().items() if name in outputs}
    found |= {f"{name}[{at}]": each for name, each in _lists(call.inputs.arguments()) for at, each in enumerate(each)}
    changed = 0
    for name, right in outputs.items():
        wrong = right.clone()
        wrong[..., -1] = found[name][..., -1]
        if not torch.equal(torch.nan_to_num(wrong.double()), torch.nan_to_num(right.double())):
            changed += 1
            assert judged(judge, call, {**outputs, name: wrong}).outcome is Outcome.WRONG_VALUE, name
    assert changed


def _lists(arguments: dict[str, Any]) -> list[tuple[str, list[torch.Tensor]]]:
    return [(name, each) for name, each in arguments.items() if isinstance(each, list)]


def test_both_parts_of_a_complex_number_are_drawn() -> None:
    generator = torch.Generator().manual_seed(0)
    for part in ("real", "imag"):
        even = getattr(draw("uniform", (-1, 3), (2000,), torch.complex64, generator), part)
        assert -1 <= float(even.min()) < -0.9
        assert 2.9 < float(even.max()) <= 3
        apart = getattr(draw("magnitudes", (1e-25, 1e25), (2000,), torch.complex64, generator), part)
        sizes = apart.double().abs().log10()
        assert -25.1 < float(sizes.min()) < -24
        assert 24 < float(sizes.max()) < 25.1
        assert 900 < int((sizes < 0).sum()) < 1100
        assert 900 < int((apart < 0).sum()) < 1100


def test_triangles_are_well_conditioned_with_diagonals_of_any_phase() -> None:
    generator = torch.Generator().manual_seed(5)
    for dtype in (torch.float64, torch.complex128):
        drawn = draw("dominant", (), (50, 64, 64), dtype, generator)
        assert torch.linalg.cond(torch.tril(drawn)).max() < 10
        assert torch.linalg.cond(torch.triu(drawn)).max() < 10
        diagonal = drawn.diagonal(dim1=-2, dim2=-1)
        assert 1 <= float(diagonal.abs().min()) <= float(diagonal.abs().max()) <= 2.0001
        quadrants = {(bool(each.real > 0), bool(each.imag > 0)) for each in diagonal.flatten().to(torch.complex128)}
        assert len(quadrants) == (4 if dtype.is_complex else 2)


def test_few_and_outer_draw_what_they_say() -> None:
    generator = torch.Generator().manual_seed(1)
    few = draw("few", ((math.inf, math.nan), 0.1), (100, 100), torch.float32, generator)
    assert 0.05 < float((~few.isfinite()).float().mean()) < 0.15
    assert int((~draw("few", ((math.inf,), 0.0), (50,), torch.float32, generator).isfinite()).sum()) == 1
    assert draw("few", ((math.inf,),), (0, 3), torch.float32, generator).shape == (0, 3)
    assert draw("outer", (3, -4, 2), (2, 3), torch.float16, generator).tolist() == [[3, 2, 2], [2, 2, -4]]
    assert draw("outer", (3, -4), (0,), torch.float16, generator).shape == (0,)
    assert draw("outer", (3, -4), (), torch.float16, generator).item() == -4
