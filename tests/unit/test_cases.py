"""Cases made concrete: ids, drawn sizes, presets, and the tensors of one call."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgbench.core.errors import ExpressionError
from kgbench.core.paths import problems_dir
from kgbench.problem import calls
from kgbench.problem.cases import (
    BoundCase,
    OtherValues,
    TensorSpec,
    bind,
    case_bytes,
    choose_preset,
    expand_cases,
    expand_for_all_devices,
    may_overlap,
)
from kgbench.problem.model import Overload, Problem
from kgbench.problem.registry import Registry, load_problem, problem_id
from tests.sampling import sample

SHIPPED = sorted(Registry().paths.values())

TEXT = """\
summary: product
kind: compute
category: gemm
entry: "gemm(transa: str, m: int, alpha: float, beta: complex, A: Tensor, lda: int, bias: Tensor | None, *, to: dtype | None, C: Tensor) -> None"
dtypes: {required: [float32, float16], optional: [float64]}
defaults: {ta: N, pad: 0, alpha: 1, to: null, bias: false, offset: 0}
variables: {lda: "max(1, m) + pad", twice: "2 * lda"}
arguments:
  transa: {value: ta}
  m: {value: m}
  alpha: {value: alpha}
  beta: {value: 0}
  A: {access: read, shape: "(m, k)", strides: "(1, lda)", offset: offset, passed: storage, live: "i >= j",
      draw: {default: "normal(0, twice)", integers: "odd_integers(15)"}}
  lda: {value: lda}
  bias: {access: read, shape: "(m,)", dtype: float32, none_when: "not bias", draw: zeros()}
  to: {value: to}
  C: {access: write, shape: "(m, m)"}
cases:
  check: [{m: 3, k: 2}, {m: 4, k: 2, pad: 2, offset: 1, dtype: float16, values: integers, bias: true}, {m: 0, k: 2, offset: 3}]
  fuzz: {count: 8, draw: {m: {range: [1, 4]}, k: {choice: [8, 9]}, pad: 1}}
  bench:
    cpu: [{m: 8, k: 8}]
    gpu24: [{m: 16, k: 16, dtype: float32}]
    gpu80: [{m: 32, k: 32}]
baseline: {cuda: "cublas:gemm"}
reference: kgbench.baselines.references.cublas:gemm
tolerance: {rule: accumulate, length: k}
doc: as in BLAS
"""  # noqa: E501


def load(folder: Path, text: str = TEXT) -> Overload:
    path = folder / "cublas" / "gemm.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return load_problem(path).overloads[0]


@pytest.fixture
def overload(tmp_path: Path) -> Overload:
    return load(tmp_path)


def bound(overload: Overload, index: int) -> dict[str, Any]:
    case = expand_cases(overload, "cpu", None, "seed")[index]
    return {each.name: each.value for each in bind(overload, case).arguments}


def test_each_case_runs_in_every_required_dtype_unless_it_names_one(overload: Overload) -> None:
    ids = [case.id for case in expand_cases(overload, "cpu", None, "seed") if case.phase != "fuzz"]
    assert ids == [
        "check-1-float32", "check-1-float16", "check-2-float16", "check-3-float32", "check-3-float16",
        "bench-cpu-1-float32", "bench-cpu-1-float16",
    ]  # fmt: skip


def test_optional_dtypes_are_asked_for(overload: Overload) -> None:
    ids = {case.id for case in expand_cases(overload, "cpu", None, "seed", optional_dtypes=True)}
    assert {"check-1-float64", "bench-cpu-1-float64"} <= ids
    assert "check-2-float64" not in ids


def test_variables_hold_defaults_derived_and_reserved_ones(overload: Overload) -> None:
    case = expand_cases(overload, "cpu", None, "seed")[2]
    assert case.variables == {
        "ta": "N", "pad": 2, "alpha": 1, "to": None, "bias": True, "offset": 1, "m": 4, "k": 2, "dtype": "float16",
        "itemsize": 2, "values": "integers", "exact": False, "unjudged": False, "lda": 6, "twice": 12,
    }  # fmt: skip


def test_fuzz_follows_the_seed_and_stays_in_range(overload: Overload) -> None:
    def fuzz(seed: str) -> list[Any]:
        return [case for case in expand_cases(overload, "cpu", None, seed) if case.phase == "fuzz"]

    assert fuzz("a") == fuzz("a") != fuzz("b")
    cases = [case for seed in "abcdefgh" for case in fuzz(seed)]
    assert {case.variables["m"] for case in cases} == {1, 2, 3, 4}
    assert {case.variables["k"] for case in cases} == {8, 9}
    assert {case.dtype for case in cases} == {"float32", "float16"}
    assert len(fuzz("a")) == 8


@pytest.mark.parametrize(
    ("device_kind", "memory_gb", "preset"),
    [
        ("cpu", None, "cpu"), ("cuda", None, "gpu24"), ("cuda", 8.0, "gpu24"), ("cuda", 23.6, "gpu24"),
        ("cuda", 79.0, "gpu80"), ("cuda", 70.0, "gpu24"), ("cuda", 150.0, "gpu80"),
    ],
)  # fmt: skip
def test_preset_is_the_largest_that_fits(overload: Overload, device_kind: str, memory_gb: float, preset: str) -> None:
    assert choose_preset(overload, device_kind, memory_gb) == preset


def test_without_bench_there_is_no_preset() -> None:
    view = load_problem(problems_dir() / "aten" / "t.yaml").overloads[0]
    assert choose_preset(view, "cuda", 80.0) == choose_preset(view, "cpu", None) == ""
    assert {case.phase for case in expand_cases(view, "cuda", 80.0, "s")} == {"check", "opinfo", "fuzz"}


def test_cases_of_all_devices_come_once_in_every_dtype(overload: Overload) -> None:
    together = [case.id for case in expand_for_all_devices(overload, "seed")]
    kinds = [("cpu", None), ("cuda", 24.0), ("cuda", 80.0)]
    apart = [case.id for kind, gb in kinds for case in expand_cases(overload, kind, gb, "seed", optional_dtypes=True)]
    assert together == list(dict.fromkeys(apart))
    assert {"check-1-float64", "bench-cpu-1-float64", "bench-gpu24-1-float32", "bench-gpu80-1-float16"} <= {*together}


def test_tensor_is_placed_in_its_storage(overload: Overload) -> None:
    spec = bound(overload, 2)["A"]
    assert (spec.shape, spec.strides, spec.offset, spec.extent) == ((4, 2), (1, 6), 1, 1 + 1 + 3 * 1 + 1 * 6)
    assert (spec.dtype, spec.passed, spec.access, spec.contiguous, spec.elements) == (
        "float16",
        "storage",
        "read",
        False,
        8,
    )
    assert (spec.draw.name, spec.draw.arguments, spec.live.text) == ("odd_integers", (15,), "i >= j")


def test_contiguous_is_the_default(overload: Overload) -> None:
    spec = bound(overload, 0)["C"]
    assert (spec.strides, spec.contiguous, spec.extent) == ((3, 1), True, 9)


def test_empty_tensor_reaches_no_further_than_its_offset(overload: Overload) -> None:
    assert bound(overload, 3)["A"].extent == 3


def test_scalars_take_the_type_of_the_entry(overload: Overload) -> None:
    values = bound(overload, 0)
    assert (values["transa"], values["m"], values["to"]) == ("N", 3, None)
    assert isinstance(values["alpha"], float)
    assert isinstance(values["beta"], complex)
    keyword_only = {each.name for each in overload.signature.parameters if each.keyword_only}
    assert keyword_only == {"to", "C"}


def test_none_when(overload: Overload) -> None:
    assert bound(overload, 0)["bias"] is None
    assert isinstance(bound(overload, 2)["bias"], TensorSpec)


def test_case_bytes_counts_storage(overload: Overload) -> None:
    case = expand_cases(overload, "cpu", None, "seed")[2]
    assert case_bytes(bind(overload, case)) == 2 * 11 + 4 * 4 + 2 * 16


POINTERS = TEXT.replace(
    'C: {access: write, shape: "(m, m)"}', 'C: {access: write, shape: "(m, 2)", passed: pointers, shuffled: "pad == 0"}'
)


@pytest.mark.parametrize(("batch", "pad"), [(0, 0), (1, 0), (2, 0), (3, 0), (40, 0), (40, 1)])
def test_shuffled_matrices_lie_in_no_order(tmp_path: Path, batch: int, pad: int) -> None:
    overload = load(tmp_path, POINTERS.replace("{m: 3, k: 2}", f"{{m: {batch}, k: 2, pad: {pad}}}"))
    slots = bound(overload, 0)["C"].slots
    assert slots == bound(overload, 0)["C"].slots
    if batch < 2 or pad:
        assert slots == ()
        return
    assert sorted(slots) == list(range(batch))
    steps = {after - before for before, after in itertools.pairwise(slots)}
    assert steps == {-1} if batch == 2 else len(steps) > 1


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('shape: "(m, m)"', 'shape: "(m, m - 9)"', "arguments.C.shape: '(m, m - 9)' is (3, -6) in case check-1-"),
        ('shape: "(m, m)"', 'shape: "()", passed: pointers', "expected a batch as the first dimension"),
        ('shape: "(m, m)"', 'shape: "m"', "arguments.C.shape: 'm' is 3 in case check-1-float32; expected a tuple"),
        ('"(1, lda)"', '"(1, -lda)"', "arguments.A.strides: '(1, -lda)' is (1, -3) in case"),
        ('"(1, lda)"', '"(1,)"', "expected 2 strides for the shape (3, 2)"),
        ("offset: offset,", "offset: offset - 1,", "arguments.A.offset: 'offset - 1' is -1 in case"),
        ("dtype: float32, none", "dtype: k, none", "arguments.bias.dtype: 'k' is 2 in case check-2-float16; expected"),
        ("m: {value: m}", "m: {value: ta}", "arguments.m.value: 'ta' is 'N' in case check-1-float32; expected int"),
        ("m: {value: m}", "m: {value: bias}", "arguments.m.value: 'bias' is False in case check-1-float32"),
        ("to: null", "to: float33", "arguments.to.value: 'to' is 'float33' in case check-1-float32; expected dtype"),
        ('lda: "max(1, m) + pad"', 'lda: "m // pad"', "variables.lda: cannot evaluate 'm // pad': integer"),
    ],
)  # fmt: skip
def test_a_value_that_makes_no_sense_names_its_key(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in TEXT
    overload = load(tmp_path, TEXT.replace(before, after))
    with pytest.raises(ExpressionError) as caught:
        [bind(overload, case) for case in expand_cases(overload, "cpu", None, "seed")]
    assert words in str(caught.value)
    assert "gemm.yaml:" in str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=problem_id)
def test_shipped_problem_is_concrete_everywhere(path: Path, shipped: Callable[[Path], Problem]) -> None:
    for overload in shipped(path).overloads:
        cases = expand_for_all_devices(overload, "seed")
        made: list[BoundCase] = [bind(overload, case) for case in cases]
        assert len({case.id for case in cases}) == len(cases)
        for each in made:
            if each.case.phase == "large":
                # Judging takes 5 copies, and 3.5 where some rows alone are compared.
                most = 14e9 if each.case.samples is None else 21e9
                assert case_bytes(each) < most, f"{each.case.id}: with its copies it would not fit in half of 150 GB"
                continue
            preset = each.case.id.split("-")[1] if each.case.phase == "bench" else "cpu"
            memory_gb = 0.5 if preset == "cpu" else float(preset.removeprefix("gpu"))
            assert case_bytes(each) < memory_gb * 1e9 / 6, f"{each.case.id}: rotating sets would not fit"


OTHERS = """\
summary: sum
kind: compute
category: reduction
entry: "sum(self: Tensor, dim: int, *, scale: float = 1.0) -> Tensor"
dtypes: {required: [float32]}
arguments:
  self:
    access: read
    draw: {default: normal(), large: "normal(0, 9)", wide: "normal(0, 9)", along: "normal(1, 9)", special: special(),
           whole: "signs()"}
cases:
  check:
    - "((T([3, 4], f32), 1), {})"
    - {call: "((T([5], f32), 1), {})", values: large}
    - {call: "((T([6], f32), 1), {})", values: large}
    - {call: "((T([3, 4], f16), 1), {})", values: wide}
    - {call: "((T([3, 4], f32), 0), {})", values: along}
    - {call: "((T([3, 4], f32), 1), {'scale': 2.0})", values: wide}
    - {call: "((T([3, 4], f32), 1), {})", values: whole, exact: true}
    - {call: "((T([3, 4], f32), 1), {})", values: wide, unjudged: true}
    - {call: "((T([3, 4], f32, [1, 3]), 1), {})", values: special}
  bench: {cpu: ["((T([64, 64], f32), 1), {})"], gpu24: ["((T([64, 64], f32), 1), {})"]}
reference: "torch.sum(self, dim) * scale"
tolerance: {rule: accumulate, length: "4"}
baseline: {cuda: "aten:sum.dim_IntList", cpu: "aten:sum.dim_IntList"}
doc: as in ATen
"""


def test_a_timed_case_comes_in_the_values_of_check_cases_that_ask_for_the_same(tmp_path: Path) -> None:
    path = tmp_path / "aten" / "sum.yaml"
    path.parent.mkdir()
    path.write_text(OTHERS)
    (overload,) = load_problem(path).overloads
    *_, bench = expand_cases(overload, "cpu", None, "seed")
    found = OtherValues(overload).of(bench)
    assert [each.values for each in found] == ["large", "along", "special"]
    assert {each.id for each in found} == {bench.id}
    assert [spec.shape for each in found for spec in bind(overload, each).specs] == [(64, 64)] * 3


def test_each_text_of_a_call_is_parsed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However often it stands in the file, is expanded, bound and drawn in other values."""
    path = tmp_path / "aten" / "softmax.yaml"
    path.parent.mkdir()
    shutil.copy(problems_dir() / "aten" / "softmax.yaml", path)
    parsed: list[str] = []
    python = calls.syntax.parse

    def counted(text: str, mode: str = "exec") -> Any:
        parsed.append(text)
        return python(text, mode)

    calls.parse.cache_clear()
    monkeypatch.setattr(calls, "syntax", SimpleNamespace(parse=counted))
    for overload in load_problem(path).judged:
        others = OtherValues(overload)
        for case in (*expand_for_all_devices(overload, "a"), *expand_cases(overload, "cpu", None, "b")):
            bind(overload, case)
            others.of(case)
    assert len(parsed) > 20
    assert len(parsed) == len(set(parsed))


@pytest.mark.parametrize("path", [each for each in SHIPPED if problem_id(each) in sample()], ids=problem_id)
def test_timed_cases_of_shipped_problems_can_be_drawn_in_other_values(
    path: Path, shipped: Callable[[Path], Problem]
) -> None:
    for overload in shipped(path).overloads:
        for case in expand_for_all_devices(overload, "seed") if overload.check else []:
            for other in OtherValues(overload).of(case) if case.phase == "bench" else []:
                specs = bind(overload, other).specs
                assert [each.shape for each in specs] == [each.shape for each in bind(overload, case).specs]
                distinct = [each for each in specs if each.draw.name == "distinct"]
                assert all(each.elements <= each.draw.arguments[0] for each in distinct)


@pytest.mark.parametrize(
    ("shape", "strides", "overlap"),
    [
        ((3, 4), (4, 1), False),
        ((3, 4), (1, 3), False),
        ((3, 4), (3, 1), True),
        ((3, 4), (0, 1), True),
        ((1, 4), (0, 1), False),
        ((2, 3), (2, 4), False),
        ((40, 3), (7, 14), True),
        ((), (), False),
    ],
)
def test_overlap_is_told_by_strides(shape: tuple[int, ...], strides: tuple[int, ...], overlap: bool) -> None:
    assert may_overlap(shape, strides) is overlap


def test_large_cases_are_for_a_gpu_alone(tmp_path: Path) -> None:
    large = "  large: [{m: 3, k: 2, pad: 2147483648, dtype: float16}]\n"
    overload = load(tmp_path, TEXT.replace("  fuzz: {count: 8", f"{large}  fuzz: {{count: 8"))
    (case,) = [case for case in expand_cases(overload, "cuda", 80.0, "s") if case.phase == "large"]
    assert (case.id, case.variables["lda"]) == ("large-1-float16", 2147483651)
    assert not [case for case in expand_cases(overload, "cpu", None, "s") if case.phase == "large"]
    assert case in expand_for_all_devices(overload, "s")
