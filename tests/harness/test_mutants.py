"""The standard mutants: what each does to tensors, to which problems it applies, and that every problem catches it.

A fifth of all pairs of problem and mutant is run, always the same; KGBENCH_MUTANTS=1 runs all of them, 0.05 fewer.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.harness import mutation  # noqa: E402
from kgbench.harness.mutant_facts import HAS, why_not  # noqa: E402
from kgbench.harness.mutants import SPOILERS, as_row_major, bfloat16, float32, mutant_entry, tf32  # noqa: E402
from kgbench.harness.session import Job, Session  # noqa: E402
from kgbench.loader import Registry, load_problem  # noqa: E402
from kgbench.mutants import MUTANTS, NEEDS  # noqa: E402
from kgbench.types import Outcome, Result  # noqa: E402

pytestmark = pytest.mark.torch
SHARE = float(os.environ.get("KGBENCH_MUTANTS", "0.2"))
PATHS = Registry().paths


@pytest.mark.parametrize(("problem", "mutant"), mutation.chosen(PATHS, share=SHARE, seed="tests"))
def test_a_problem_catches_the_mutant(session: Session, problem: str, mutant: str) -> None:
    for row in mutation.rows(session.evaluate, PATHS[problem], problem, mutant):
        assert row.state not in mutation.BAD, row


# --- the engine itself, on a problem whose cases are too few ---

PROBLEM = """\
summary: a tensor times a number
kind: creation
category: test
entry: "scaled(self: Tensor, factor: float) -> Tensor"
dtypes: {required: [float32]}
arguments:
  self: {access: read, shape: "(m, n)", draw: "DRAW"}
  factor: {value: "2.0"}
cases:
  check: [CASES]
reference: "REFERENCE"
tolerance: {rule: rounding}
doc: Two times self.
"""


def problem_file(folder: Path, cases: str, reference: str = "torch.mul(self, factor)", draw: str = "normal()") -> Path:
    path = folder / "aten" / "scaled.yaml"
    path.parent.mkdir(exist_ok=True)
    text = PROBLEM.replace("CASES", cases).replace("REFERENCE", reference).replace("DRAW", draw)
    path.write_text(text)
    return path


def state(session: Session, path: Path, mutant: str) -> mutation.Row:
    (row,) = mutation.rows(session.evaluate, path, "aten/scaled", mutant)
    return row


def test_a_gap_in_the_cases_is_found(session: Session, tmp_path: Path) -> None:
    blind = problem_file(tmp_path, "{m: 2, n: 128}")
    assert state(session, blind, "last_tile").state == mutation.SURVIVED
    seeing = problem_file(tmp_path, "{m: 2, n: 128}, {m: 3, n: 65}")
    row = state(session, seeing, "last_tile")
    assert (row.state, row.case) == (mutation.CAUGHT, "check-2-float32")


def test_a_mutant_that_needs_what_is_not_there_does_not_apply(session: Session, tmp_path: Path) -> None:
    path = problem_file(tmp_path, "{m: 2, n: 5}")
    row = state(session, path, "float32_inputs")
    assert (row.state, row.words) == (mutation.NOT_APPLICABLE, NEEDS["float64 input"])


def test_declared_equivalents_are_run_and_counted(session: Session, tmp_path: Path) -> None:
    path = problem_file(tmp_path, "{m: 2, n: 5}", reference="torch.mul(self, 0)")
    assert state(session, path, "zeros").state == mutation.SURVIVED
    path.write_text(path.read_text() + "mutants: {equivalent: {zeros: zeros are right, untouched: a mistake}}\n")
    assert state(session, path, "zeros") == mutation.Row(
        "aten/scaled", "", "zeros", mutation.EQUIVALENT, "", "zeros are right"
    )
    row = state(session, path, "untouched")
    assert row.state == mutation.DECLARED_WRONGLY
    assert row.words.startswith("declared equivalent, but it was caught: wrong value")


@pytest.mark.parametrize("outcome", [Outcome.RUNTIME_ERROR, Outcome.HARNESS_ERROR, Outcome.TIMEOUT])
def test_a_mutant_that_breaks_is_not_caught(tmp_path: Path, outcome: Outcome) -> None:
    def broken(job: Job) -> Result:
        return Result(job.problem_id, job.model, 0, outcome, "it broke", log_tail="its last words")

    (row,) = mutation.rows(broken, problem_file(tmp_path, "{m: 2, n: 5}"), "aten/scaled", "zeros")
    assert (row.state, row.words) == (mutation.BROKEN, "it broke\nits last words")


def test_a_sample_is_drawn_by_its_seed() -> None:
    everything = mutation.chosen(["a/x", "a/y"])
    assert len(everything) == 2 * len(MUTANTS)
    fifth = mutation.chosen(["a/x", "a/y"], share=0.2, seed="1")
    assert len(fifth) == round(0.2 * len(everything))
    assert fifth == mutation.chosen(["a/x", "a/y"], share=0.2, seed="1")
    assert fifth != mutation.chosen(["a/x", "a/y"], share=0.2, seed="2")


# --- which problem has what ---


def test_the_tables_name_the_same() -> None:
    assert set(MUTANTS) == set(SPOILERS)
    assert set(NEEDS) == set(HAS) == {mutant.needs for mutant in MUTANTS.values()} | {"anything"}


@pytest.mark.parametrize(
    ("problem", "mutant", "applies"),
    [
        ("aten/mm", "tf32_inputs", True),
        ("aten/t", "tf32_inputs", False),
        ("vllm/paged_attention_v1", "tf32_inputs", False),
        ("cublas/cublasZgemmStridedBatched", "float32_inputs", True),
        ("aten/mm", "float32_inputs", False),
        ("cublas/cublasSdot_v2", "last_row", False),
        ("cublas/cublasSgemm_v2", "writes_around", True),
        ("vllm/rms_norm", "writes_around", False),
        ("vllm/rms_norm", "ignores_strides", True),
        ("vllm/rotary_embedding", "ignores_strides", False),
        ("vllm/rotary_embedding", "first_output_only", True),
        ("vllm/rms_norm", "flattened", False),
        ("aten/softmax", "flattened", True),
        ("aten/t", "copy", True),
        ("aten/mm", "copy", False),
    ],
)
def test_a_mutant_applies_where_there_is_something_to_spoil(problem: str, mutant: str, applies: bool) -> None:
    overload = load_problem(PATHS[problem]).overloads[0]
    assert (why_not(mutant, overload) == "") is applies


# --- what each does ---


def hints(**views: Any) -> dict[str, Any]:
    """What the referee tells beside the arguments, for tensors that are passed as they are."""
    shapes = {name: [list(each.shape), list(each.stride()), 0, None, {}, []] for name, each in views.items()}
    return {"_views": shapes, "_written": [], "_returns": ["float32"], "_alias": False}


def answer(mutant: str, x: Any, reference: str = "torch.mul(x, 2)", **changed: Any) -> Any:
    """What a mutant of a function of one tensor returns."""
    return mutant_entry(mutant, reference, ["x"])(x, **{**hints(x=x), **changed})


def written(mutant: str, x: Any, out: Any, **changed: Any) -> Any:
    """What ``out`` holds after a mutant that should have written 2 x there."""
    text = "def reference(x, out):\n    return {'out': 2 * x}"
    told = {**hints(x=x, out=out), "_written": ["out"], "_returns": [], **changed}
    assert mutant_entry(mutant, text, ["x", "out"])(x, out, **told) is None
    return out


RIGHT = [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


@pytest.mark.parametrize(
    ("mutant", "wanted"),
    [
        ("zeros", [[0.0] * 3] * 2),
        ("constant", [[7.0] * 3] * 2),
        ("passthrough", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ("half", [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]),
        ("last_element", [[2.0, 4.0, 6.0], [8.0, 10.0, 0.0]]),
        ("last_row", [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]),
        ("last_column", [[2.0, 4.0, 0.0], [8.0, 10.0, 0.0]]),
        ("shifted", [[12.0, 2.0, 4.0], [6.0, 8.0, 10.0]]),
        ("transposed", [[2.0, 8.0, 4.0], [10.0, 6.0, 12.0]]),
        ("negated", [[-2.0, -4.0, -6.0], [-8.0, -10.0, -12.0]]),
        ("flattened", [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]),
        ("last_tile", RIGHT),
        ("drops_nan", RIGHT),
        ("first_output_only", RIGHT),
        ("writes_around", RIGHT),
    ],
)
def test_what_is_returned(mutant: str, wanted: Any) -> None:
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    assert answer(mutant, x).tolist() == wanted
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_untouched_memory_is_poison_and_a_written_argument_keeps_what_it_held() -> None:
    x = torch.ones(3)
    assert answer("untouched", x).isnan().all()
    assert written("untouched", x, torch.full((3,), 5.0)).tolist() == [5.0] * 3
    assert written("half", x, torch.full((3,), 5.0)).tolist() == [2.0, 5.0, 5.0]
    assert written("zeros", x, torch.full((3,), 5.0)).tolist() == [0.0] * 3


def test_the_last_tile_is_what_128_does_not_divide() -> None:
    left = answer("last_tile", torch.ones(300)) == 0
    assert left.nonzero().flatten().tolist() == list(range(256, 300))
    assert not (answer("last_tile", torch.ones(256)) == 0).any()


def test_a_stale_answer_is_the_first_of_its_shape() -> None:
    entry = mutant_entry("stale", "torch.mul(x, 2)", ["x"])
    first, second, other = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([5.0])
    assert entry(first, **hints(x=first)).tolist() == [2.0, 4.0]
    assert entry(other, **hints(x=other)).tolist() == [10.0]
    assert entry(second, **hints(x=second)).tolist() == [2.0, 4.0]


def test_a_dropped_nan_and_another_dtype() -> None:
    assert answer("drops_nan", torch.tensor([float("nan"), 1.0])).tolist() == [0.0, 2.0]
    assert answer("other_dtype", torch.ones(2)).dtype == torch.float64
    assert answer("other_dtype", torch.ones(2), _returns=["float64"]).dtype == torch.float32


def test_an_input_is_changed_and_the_answer_right() -> None:
    x = torch.tensor([1.0, 2.0])
    assert answer("changes_input", x).tolist() == [2.0, 4.0]
    assert x[0] != 1.0


def test_only_the_first_of_two_outputs_is_written() -> None:
    a, b, x = torch.zeros(2), torch.zeros(2), torch.ones(2)
    told = {**hints(x=x, a=a, b=b), "_written": ["a", "b"], "_returns": []}
    text = "def reference(x, a, b):\n    return {'a': x, 'b': 2 * x}"
    mutant_entry("first_output_only", text, ["x", "a", "b"])(x, a, b, **told)
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_padding_and_the_dead_triangle_are_overwritten_and_the_answer_is_right() -> None:
    storage = torch.full((8,), 9.0)
    view = storage.as_strided((2, 2), (3, 1))
    told = hints(x=torch.ones(2, 2), out=view)["_views"] | {"out": [[2, 2], [3, 1], 0, "i >= j", {}, []]}
    written("writes_around", torch.ones(2, 2), view, _views=told)
    assert storage.tolist() == [2.0, 0.0, 0.0, 2.0, 2.0, 9.0, 9.0, 9.0]


def test_strides_are_ignored_within_the_storage() -> None:
    padded = torch.arange(10.0).as_strided((2, 3), (5, 1), 1)
    assert as_row_major(padded).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    expanded = torch.arange(3.0).expand(2, 3)
    assert as_row_major(expanded).tolist() == expanded.tolist()
    assert answer("ignores_strides", padded).tolist() == RIGHT


def test_views_that_are_none_and_views_that_begin_elsewhere() -> None:
    base = torch.arange(12.0)
    x = base[2:8].reshape(2, 3)
    right = answer("negated", x, "torch.t(x)", _alias=True)
    assert right.stride() == (1, 3)
    assert right.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    copy = answer("copy", x, "torch.t(x)", _alias=True)
    assert copy.tolist() == x.t().tolist()
    assert (copy.stride(), copy.data_ptr() == x.data_ptr()) == ((1, 3), False)
    start = answer("storage_start", x, "torch.t(x)", _alias=True)
    assert start.data_ptr() == base.data_ptr()
    assert answer("passthrough", x, "torch.t(x)", _alias=True) is not None


def test_roundings_keep_their_bits_and_every_nan() -> None:
    third = 1 / 3
    for dtype in (torch.float32, torch.float64):
        value = torch.tensor([third, -2.0, float("nan"), float("inf")], dtype=dtype)
        for spoil, bits in ((bfloat16, 8), (tf32, 11)):
            rounded = spoil(value)
            assert rounded.dtype == dtype
            error = abs(rounded[0].item() - third)
            assert 0.0 < error <= third * 2.0**-bits
            assert rounded[1:].nan_to_num(7.0, 8.0).tolist() == [-2.0, 7.0, 8.0]
    everything = torch.full((4,), 0xFF, dtype=torch.uint8).view(torch.float32)
    assert tf32(everything).isnan().all()
    assert tf32(torch.tensor([complex(third, 1 / 7)])).imag.item() != torch.tensor(1 / 7).item()
    assert 0.0 < abs(float32(torch.tensor([third], dtype=torch.float64)).item() - third) < 1e-7
    assert bfloat16(torch.tensor([3])).tolist() == [3]


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float8_e4m3fn", "complex64"])
def test_every_mutant_of_every_dtype_runs_also_on_nothing(mutant: str, dtype: str) -> None:
    for shape in ((), (0, 3), (2, 3)):
        x = torch.ones(shape).to(getattr(torch, dtype))
        told = {**hints(x=x), "_returns": [dtype]}
        assert mutant_entry(mutant, "torch.clone(x)", ["x"])(x, **told) is not None
