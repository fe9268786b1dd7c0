"""The standard mutants: what each does to tensors, to which problems it applies, and that every problem catches it.

Of the pairs of problem and mutant a quarter is run for a run's share of the problems (tests/sampling.py), all with
KGBENCH_TEST_ALL=1.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.types import Result  # noqa: E402
from kgbench.harness.mutants import aten, blas  # noqa: E402
from kgbench.harness.mutants.applicability import HAS, why_not  # noqa: E402
from kgbench.harness.mutants.inputs import as_row_major, bfloat16, float32, tf32  # noqa: E402
from kgbench.harness.mutants.standard import MUTATORS, mutant_entry  # noqa: E402
from kgbench.harness.session.session import Job, Session  # noqa: E402
from kgbench.harness.verdict.reference import ReferenceContext, ReferenceFunction  # noqa: E402
from kgbench.problem.mutants import MUTANTS, NEEDS  # noqa: E402
from kgbench.problem.registry import Registry, load_problem  # noqa: E402
from kgbench.selftest import mutants as mutation  # noqa: E402
from tests.sampling import sample  # noqa: E402

pytestmark = pytest.mark.torch
PATHS = Registry().paths


def pairs() -> dict[str, list[str]]:
    """The mutants to run by problem."""
    found: dict[str, list[str]] = {}
    problems, share = [each for each in PATHS if each in sample()], 1.0 if sample().share is None else 0.25
    for problem, mutant in mutation.chosen(problems, share=share, seed="tests"):
        found.setdefault(problem, []).append(mutant)
    return found


@pytest.mark.timeout(300)  # forty mutants one after the other on a busy machine, and the first opens the session
@pytest.mark.parametrize(("problem", "mutants"), pairs().items(), ids=pairs())
def test_a_problem_catches_its_mutants(session: Session, problem: str, mutants: list[str]) -> None:
    def run(mutant: str) -> list[mutation.Row]:
        return list(mutation.rows(session.evaluate, PATHS[problem], problem, mutant))

    with ThreadPoolExecutor(session.jobs) as pool:
        found = [row for rows in pool.map(run, mutants) for row in rows]
    assert [row for row in found if row.state in mutation.BAD] == []


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
    assert len(everything) == 2 * sum(not mutant.source for mutant in MUTANTS.values())
    for source in ("cublas", "aten"):
        assert len(mutation.chosen([f"{source}/x"])) == sum(m.source in ("", source) for m in MUTANTS.values())
    assert mutation.chosen(["a/x"], ["ignores_beta"]) == [("a/x", "ignores_beta")]
    fifth = mutation.chosen(["a/x", "a/y"], share=0.2, seed="1")
    assert len(fifth) == round(0.2 * len(everything))
    assert fifth == mutation.chosen(["a/x", "a/y"], share=0.2, seed="1")
    assert fifth != mutation.chosen(["a/x", "a/y"], share=0.2, seed="2")


# --- which problem has what ---


def test_the_tables_name_the_same() -> None:
    assert set(MUTANTS) == set(MUTATORS)
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
        ("aten/contiguous", "copy", True),
        ("aten/add", "ignores_alpha", True),
        ("aten/mm", "ignores_alpha", False),
        ("aten/add", "flat_broadcast", True),
        ("aten/mm", "flat_broadcast", False),
        ("aten/mm", "narrow_sums", True),
        ("aten/add", "narrow_sums", False),
        ("aten/softmax", "narrow_sums", True),
        ("aten/softmax", "negative_dim", True),
        ("aten/mm", "negative_dim", False),
        ("aten/add", "storage_offset", True),
        ("aten/t", "storage_offset", False),
        ("aten/mm", "begins_anew", False),
        ("aten/mm", "another_type", False),
        ("cublas/cublasSscal_v2", "ignores_alpha", True),
        ("cublas/cublasSscal_v2", "ignores_beta", False),
        ("cublas/cublasSgeam", "ignores_beta", True),
        ("cublas/cublasSgemm_v2", "never_conjugates", False),
        ("cublas/cublasCgemm_v2", "never_conjugates", True),
        ("cublas/cublasCsyrkEx", "never_conjugates", False),
        ("cublas/cublasZdotc_v2", "never_conjugates", True),
        ("cublas/cublasZdotc_v2", "always_conjugates", False),
        ("cublas/cublasCdotu_v2", "always_conjugates", True),
        ("cublas/cublasCcopy_v2", "always_conjugates", True),
        ("cublas/cublasSdgmm", "left_only", True),
        ("cublas/cublasSdgmm", "lower_only", False),
        ("cublas/cublasDsbmv_v2", "returns_early", True),
        ("cublas/cublasSgemmEx", "half_sums", True),
        ("cublas/cublasHgemmBatched", "half_sums", False),
        ("aten/mm", "half_sums", False),
        ("cublas/cublasHgemmBatched", "packed_batch", True),
    ],
)
def test_a_mutant_applies_where_there_is_something_to_break(problem: str, mutant: str, applies: bool) -> None:
    overload = load_problem(PATHS[problem]).overloads[0]
    assert (why_not(mutant, overload) == "") is applies


# --- what each does ---


def context(**views: Any) -> dict[str, Any]:
    """What the referee tells beside the arguments, for tensors that are passed as they are."""
    shapes = {name: [list(each.shape), list(each.stride()), 0, None, {}, []] for name, each in views.items()}
    return {"_views": shapes, "_written": [], "_returns": ["float32"], "_alias": False}


def answer(mutant: str, x: Any, reference: str = "torch.mul(x, 2)", **changed: Any) -> Any:
    """What a mutant of a function of one tensor returns."""
    return mutant_entry(mutant, ReferenceFunction(reference), ["x"])(x, **{**context(x=x), **changed})


def written(mutant: str, x: Any, out: Any, **changed: Any) -> Any:
    """What ``out`` holds after a mutant that should have written 2 x there."""
    text = "def reference(x, out):\n    return {'out': 2 * x}"
    told = {**context(x=x, out=out), "_written": ["out"], "_returns": [], **changed}
    assert mutant_entry(mutant, ReferenceFunction(text), ["x", "out"])(x, out, **told) is None
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
    entry = mutant_entry("stale", ReferenceFunction("torch.mul(x, 2)"), ["x"])
    first, second, other = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([5.0])
    assert entry(first, **context(x=first)).tolist() == [2.0, 4.0]
    assert entry(other, **context(x=other)).tolist() == [10.0]
    assert entry(second, **context(x=second)).tolist() == [2.0, 4.0]


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
    told = {**context(x=x, a=a, b=b), "_written": ["a", "b"], "_returns": []}
    text = "def reference(x, a, b):\n    return {'a': x, 'b': 2 * x}"
    mutant_entry("first_output_only", ReferenceFunction(text), ["x", "a", "b"])(x, a, b, **told)
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_padding_and_the_dead_triangle_are_overwritten_and_the_answer_is_right() -> None:
    storage = torch.full((8,), 9.0)
    view = storage.as_strided((2, 2), (3, 1))
    told = context(x=torch.ones(2, 2), out=view)["_views"] | {"out": [[2, 2], [3, 1], 0, "i >= j", {}, []]}
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
    assert answer("flattened", x, "torch.t(x)", _alias=True).tolist() == [2.0, 5.0, 3.0, 6.0, 4.0, 7.0]


def test_roundings_keep_their_bits_and_every_nan() -> None:
    third = 1 / 3
    for dtype in (torch.float32, torch.float64):
        value = torch.tensor([third, -2.0, float("nan"), float("inf")], dtype=dtype)
        for mutator, bits in ((bfloat16, 8), (tf32, 11)):
            rounded = mutator(value)
            assert rounded.dtype == dtype
            error = abs(rounded[0].item() - third)
            assert 0.0 < error <= third * 2.0**-bits
            assert rounded[1:].nan_to_num(7.0, 8.0).tolist() == [-2.0, 7.0, 8.0]
    everything = torch.full((4,), 0xFF, dtype=torch.uint8).view(torch.float32)
    assert tf32(everything).isnan().all()
    assert tf32(torch.tensor([complex(third, 1 / 7)])).imag.item() != torch.tensor(1 / 7).item()
    assert 0.0 < abs(float32(torch.tensor([third], dtype=torch.float64)).item() - third) < 1e-7
    assert bfloat16(torch.tensor([3])).tolist() == [3]


# --- BLAS routines, on one small call each ---

GEMM = "def reference(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):\n" + (
    "    from kgbench.baselines.references.cublas import gemm\n    return gemm(transa, transb, alpha, A, B, beta, C)"
)
NAN = float("nan")


def gemm(mutant: str, **changed: Any) -> Any:
    """C after a mutant of C = 2 op(A) op(B) + 3 C, where A (2, 3) and B (3, 2) have a leading dimension of 4."""
    storage = {
        "A": torch.tensor([1.0, 2, NAN, NAN, 3, 4, NAN, NAN, 5, 6, NAN, NAN], dtype=torch.float32),
        "B": torch.tensor([1.0, 0, 2, NAN, 0, 1, 1, NAN]),
        "C": torch.tensor([1.0, 2.0, 3.0, 4.0]),
    }
    strides = {"A": (1, 4), "B": (1, 4), "C": (1, 2)}
    shapes = {"A": (2, 3), "B": (3, 2), "C": (2, 2)}
    passed = {
        "transa": "N",
        "transb": "N",
        "m": 2,
        "n": 2,
        "k": 3,
        "alpha": 2.0,
        "beta": 3.0,
        "lda": 4,
        "ldb": 4,
        "ldc": 2,
    }
    shapes |= changed.pop("shapes", {})
    passed |= changed
    views = {name: [list(shapes[name]), list(strides[name]), 0, None, {}, []] for name in storage}
    told = {"_views": views, "_written": ["C"], "_returns": [], "_alias": False}
    names = ["transa", "transb", "m", "n", "k", "alpha", "A", "lda", "B", "ldb", "beta", "C", "ldc"]
    entry = mutant_entry(mutant, ReferenceFunction(GEMM), names)
    assert entry(**{**passed, **storage, **told}) is None
    return storage["C"].reshape(2, 2).mT.nan_to_num(-7.0).tolist()


def test_factors_are_taken_for_others() -> None:
    # A B = [[11, 8], [14, 10]]
    assert gemm("drops_nan") == [[25.0, 25.0], [34.0, 32.0]]
    assert gemm("ignores_alpha") == [[14.0, 17.0], [20.0, 22.0]]
    assert gemm("ignores_beta") == [[22.0, 16.0], [28.0, 20.0]]
    assert gemm("returns_early") == gemm("drops_nan")
    empty = {"k": 0, "shapes": {"A": (2, 0), "B": (0, 2)}}
    assert gemm("drops_nan", **empty) == [[3.0, 9.0], [6.0, 12.0]]
    assert gemm("returns_early", **empty) == [[1.0, 3.0], [2.0, 4.0]]


def test_a_zero_that_multiplies_lets_nan_through() -> None:
    for mutant, factor in (("alpha_zero_reads", "alpha"), ("beta_zero_reads", "beta")):
        for zero in (0.0, 0):
            changed = {factor: zero}
            assert gemm(mutant, **changed) == gemm("drops_nan", **changed)
        assert gemm(mutant) == gemm("drops_nan")
    zero = blas.RealZero()
    assert (torch.tensor([NAN, 1.0]) * zero).isnan().tolist() == [True, False]
    assert zero
    assert not zero == 0  # noqa: SIM201
    assert (blas.ComplexZero() * torch.tensor([complex(NAN)])).isnan().all()


def test_a_wrong_transpose_reads_the_same_memory_in_another_order() -> None:
    # A of three columns of two, read as two columns of three, 4 apart, and transposed: its padding is NaN.
    assert gemm("always_transposes") == [[-7.0, -7.0], [-7.0, -7.0]]
    assert gemm("never_transposes") == gemm("drops_nan")
    square = {"transa": "T", "k": 2, "shapes": {"A": (2, 2), "B": (2, 2)}, "beta": 0.0}
    assert gemm("never_transposes", **square) == gemm("drops_nan", **{**square, "transa": "N"})
    assert gemm("always_transposes", **square) == gemm("always_transposes", **{**square, "transa": "N"})


def test_leading_dimensions_are_ignored() -> None:
    # A is read as 1 2 | NaN NaN | 3 4, so that nothing but NaN comes out.
    assert gemm("packed_columns") == [[-7.0, -7.0], [-7.0, -7.0]]


def changed_by(change: blas.Change, given: dict[str, Any], views: dict[str, list[Any]], *written: str) -> Any:
    """Arguments after a change. ``views``: shape, strides and slots per storage in ``given``."""
    told = {name: [list(shape), list(strides), 0, None, {}, slots] for name, (shape, strides, slots) in views.items()}
    arguments = {**given, "_views": told, "_written": list(written), "_returns": [], "_alias": False}
    context = ReferenceContext.taken(arguments)
    change(arguments, context)
    return arguments


def test_a_batch_is_read_in_one_piece() -> None:
    numbers = torch.arange(12.0)
    apart = changed_by(blas.packed_batch, {"A": numbers, "batchCount": 2}, {"A": ((2, 1, 2), (6, 1, 2), [])})
    assert apart["A"].tolist() == [[[0.0, 2.0]], [[4.0, 6.0]]]
    views = {"Aarray": ((3, 1, 2), (4, 1, 2), [1, 0, 2])}
    pointers = changed_by(blas.packed_batch, {"Aarray": numbers, "batchCount": 3}, views)
    assert pointers["Aarray"].nan_to_num(-7.0).tolist() == [[[4.0, 6.0]], [[8.0, 10.0]], [[-7.0, -7.0]]]


def test_vectors_are_read_in_one_piece_or_from_the_wrong_end() -> None:
    given, views = {"x": torch.arange(5.0), "incx": -2}, {"x": ((3,), (2,), [])}
    packed = changed_by(blas.packed_vectors, given, views)
    assert (packed["x"].tolist(), packed["incx"]) == ([0.0, 1.0, 2.0], -2)
    assert changed_by(blas.walks_forward, given, views)["incx"] == 2


def test_flags_are_taken_for_others() -> None:
    given = {"uplo": "U", "diag": "U", "trans": "C", "A": torch.ones(4)}
    views = {"A": ((2, 2), (1, 2), [])}
    assert changed_by(MUTATORS["lower_only"].arguments, given, views)["uplo"] == "L"
    assert changed_by(MUTATORS["upper_only"].arguments, given, views)["uplo"] == "U"
    assert changed_by(MUTATORS["unit_ignored"].arguments, given, views)["diag"] == "N"
    assert changed_by(MUTATORS["unit_only"].arguments, given, views)["diag"] == "U"
    assert changed_by(MUTATORS["never_conjugates"].arguments, given, views)["trans"] == "T"
    assert changed_by(MUTATORS["always_conjugates"].arguments, given, views)["trans"] == "C"


def test_a_triangle_is_written_where_the_other_one_is() -> None:
    views = {"C": [[2, 2], [1, 2], 0, "i >= j if uplo == 'L' else i <= j", {"uplo": "U"}, []]}
    arguments = {"C": torch.zeros(4), "uplo": "U", "_views": views, "_written": ["C"], "_returns": [], "_alias": False}
    context = ReferenceContext.taken(arguments)
    MUTATORS["lower_only"].arguments(arguments, context)
    assert context.live("C", arguments["C"]).tolist() == [[True, False], [True, True]]


def test_a_vector_is_conjugated_where_no_flag_says_so() -> None:
    z = torch.tensor([1 + 2j])
    views = {"x": ((1,), (1,), []), "y": ((1,), (1,), [])}
    dot = changed_by(MUTATORS["never_conjugates"].arguments, {"x": z, "y": z}, views)
    assert (dot["x"].item(), dot["y"].item()) == (1 - 2j, 1 + 2j)
    matrix = {**views, "A": ((1, 1), (1, 1), [])}
    rank_one = changed_by(MUTATORS["never_conjugates"].arguments, {"x": z, "y": z, "A": z}, matrix, "A")
    assert (rank_one["x"].item(), rank_one["y"].item()) == (1 + 2j, 1 - 2j)


def test_a_matrix_on_the_wrong_side_has_that_sides_size() -> None:
    given = {"side": "R", "m": 1, "n": 2, "A": torch.arange(1.0, 5.0)}
    left = changed_by(MUTATORS["left_only"].arguments, given, {"A": ((2, 2), (1, 2), [])})
    assert (left["side"], left["A"].tolist()) == ("L", [[1.0]])
    kept = changed_by(MUTATORS["right_only"].arguments, given, {"A": ((2, 2), (1, 2), [])})
    assert (kept["side"], kept["A"].tolist()) == ("R", [[1.0, 3.0], [2.0, 4.0]])
    scaled = {"mode": "L", "m": 2, "n": 3, "x": torch.tensor([1.0, 2.0])}
    right = changed_by(MUTATORS["right_only"].arguments, scaled, {"x": ((2,), (1,), [])})
    assert right["x"].nan_to_num(-7.0).tolist() == [1.0, 2.0, -7.0]


def test_sums_in_16_bits_lose_what_float32_keeps() -> None:
    ones = torch.ones(3000)
    text = GEMM
    views = {
        "A": [[1, 3000], [1, 1], 0, None, {}, []], "B": [[3000, 1], [1, 3000], 0, None, {}, []],
        "C": [[1, 1], [1, 1], 0, None, {}, []],
    }  # fmt: skip
    for dtype, wanted in ((torch.float16, 2048.0), (torch.float32, 3000.0)):
        c = torch.zeros(1)
        told = {"_views": views, "_written": ["C"], "_returns": [], "_alias": False}
        matrices = {"A": ones.to(dtype), "B": ones.to(dtype), "C": c}
        sizes = {"transa": "N", "transb": "N", "m": 1, "n": 1, "k": 3000, "alpha": 1.0, "beta": 0.0}
        given = {**sizes, "lda": 1, "ldb": 3000, "ldc": 1, **matrices, **told}
        mutant_entry("half_sums", ReferenceFunction(text), list(given))(**given)
        assert c.item() == wanted


def test_every_mutant_of_every_dtype_runs_also_on_nothing() -> None:
    dtypes = ["bool", "uint8", "int64", "float16", "float8_e4m3fn", "complex64"]
    names = [name for name, each in MUTANTS.items() if not each.source]
    failed = []
    for mutant, dtype, shape in itertools.product(names, dtypes, [(), (0, 3), (2, 3)]):
        x = torch.ones(shape).to(getattr(torch, dtype))
        entry = mutant_entry(mutant, ReferenceFunction("torch.clone(x)"), ["x"])
        try:
            answered = entry(x, **{**context(x=x), "_returns": [dtype]}) is not None
        except Exception as error:
            answered, shape = False, (*shape, error)
        if not answered:
            failed.append((mutant, dtype, shape))
    assert failed == []


# --- those of ATen ---


def mutated(mutant: str, reference: str, **given: Any) -> Any:
    """What a mutant of a function of these arguments returns."""
    tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    for name, value in given.items():
        if isinstance(value, list):
            tensors |= {f"{name}[{at}]": each for at, each in enumerate(value) if isinstance(each, torch.Tensor)}
    entry = mutant_entry(mutant, ReferenceFunction(reference), list(given))
    dtype = str(next(iter(tensors.values())).dtype).removeprefix("torch.") if tensors else "float32"
    return entry(**given, **{**context(**tensors), "_returns": [dtype]})


def test_keepdim_is_dropped() -> None:
    x = torch.ones(2, 3)
    assert mutated("ignores_keepdim", "torch.sum(x, dim, keepdim)", x=x, dim=1, keepdim=True).shape == (2,)


def test_negative_dimensions_are_counted_from_the_front() -> None:
    x = torch.arange(6.0).reshape(1, 2, 3)
    assert torch.equal(mutated("negative_dim", "torch.cumsum(x, dim)", x=x, dim=-1), x)
    assert torch.equal(mutated("negative_dim", "torch.cumsum(x, dim)", x=x, dim=2), x.cumsum(2))
    assert torch.equal(mutated("negative_dim", "torch.flip(x, dims)", x=x, dims=[-1, 1]), x.flip(0).flip(1))


def test_the_last_tensor_is_taken_for_zeros() -> None:
    xs = [torch.ones(2), torch.ones(2)]
    assert mutated("last_tensor", "torch.cat(xs)", xs=xs).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_an_offset_is_missed_by_one_element() -> None:
    storage = torch.arange(5.0)
    assert mutated("storage_offset", "torch.clone(x)", x=storage[1:4]).tolist() == [0.0, 1.0, 2.0]
    assert mutated("storage_offset", "torch.clone(x)", x=storage).tolist() == storage.tolist()


def test_a_broadcast_operand_is_read_again_and_again() -> None:
    x, column = torch.zeros(2, 3), torch.tensor([[1.0], [2.0]])
    assert mutated("flat_broadcast", "torch.add(x, y)", x=x, y=column).tolist() == [[1.0, 2.0, 1.0], [2.0, 1.0, 2.0]]
    assert aten.misread((2, 1), (2, 3))
    assert not aten.misread((3,), (2, 3))
    assert not aten.misread((1, 3), (2, 3))
    assert not aten.misread((), (2, 3))


def test_quotients_are_cut_off() -> None:
    text = "torch.floor(torch.div(self, other))"
    given = {"self": torch.tensor([-7.0, 7.0, -6.0]), "other": torch.tensor([2.0, 2.0, 2.0])}
    assert mutated("rounds_to_zero", text, **given).tolist() == [-3.0, 3.0, -3.0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("torch.sum(x, 0)", 256.0),
        ("torch.sum(x)", 256.0),
        ("torch.mean(x, 0)", 256.0 / 1000),
        ("torch.sum(x, 0, True)", 256.0),
        ("torch.cumsum(x, 0)", 256.0),
        ("torch.matmul(x, torch.ones(1000, 2, dtype=torch.float64))", 256.0),
    ],
)
def test_sums_stand_still_where_16_bits_end(text: str, wanted: float) -> None:
    """bfloat16 has no 257."""
    x = torch.ones(1, 1000) if "matmul" in text else torch.ones(1000, 1)
    assert float(mutated("narrow_sums", text, x=x.bfloat16()).reshape(-1)[-1]) == pytest.approx(wanted, rel=1e-2)
    assert float(mutated("narrow_sums", text, x=x).reshape(-1)[-1]) == pytest.approx(wanted * 1000 / 256)


def test_nothing_is_summed_in_16_bits_too() -> None:
    x = torch.ones(0, 3, dtype=torch.bfloat16)
    assert mutated("narrow_sums", "torch.sum(x, 0)", x=x).tolist() == [0.0] * 3
    assert mutated("narrow_sums", "torch.sum(x)", x=x[:, 0]).item() == 0.0
    assert mutated("narrow_sums", "torch.matmul(x, torch.ones(3, 2, dtype=torch.float64))", x=x).shape == (0, 2)
    assert mutated("narrow_sums", "torch.sum(x)", x=torch.tensor(2.0, dtype=torch.bfloat16)).item() == 2.0


RANDOM = """def reference(x, generator=None):
    import kgbench.baselines.references.random as laws
    return laws.exponential(x)
"""


def drawn(mutant: str, count: int = 5000, generator: Any = None) -> Any:
    return mutated(mutant, RANDOM, x=torch.zeros(count), generator=generator)


def test_random_mutants_do_what_they_say() -> None:
    torch.manual_seed(5)
    assert torch.equal(drawn("begins_anew"), drawn("begins_anew"))
    first = drawn("ignores_seed")
    torch.manual_seed(5)
    assert not torch.equal(drawn("ignores_seed"), first)
    own = torch.Generator()
    assert not torch.equal(
        drawn("ignores_generator", generator=own.manual_seed(1)),
        drawn("ignores_generator", generator=own.manual_seed(1)),
    )
    assert torch.equal(drawn("biased", generator=own.manual_seed(1)), drawn("biased", generator=own.manual_seed(1)))
    assert float(drawn("biased", 100_000)[::10].mean()) == pytest.approx(0.5, abs=0.05)
    blocks = drawn("same_blocks")
    assert torch.equal(blocks[:1024], blocks[1024:2048])
    neighbours = drawn("like_neighbours")
    assert torch.equal(neighbours[9::10], neighbours[8::10])
    assert not torch.equal(neighbours[8::10], neighbours[7::10])


@pytest.mark.parametrize("value", [True, 7, 2**53 + 1, 0.1, float("inf"), 1.5 + 0.1j])
def test_python_values_change_their_type_or_their_bits(value: Any) -> None:
    told = {**context(), "_returns": [], "_plain": True}
    text = f"def reference(x):\n    return {value!r}".replace("inf", "float('inf')")
    assert type(mutant_entry("another_type", ReferenceFunction(text), ["x"])(None, **told)) is not type(value)
    passed = mutant_entry("single_precision", ReferenceFunction(text), ["x"])(None, **told)
    assert type(passed) is type(value)
    assert (passed == value) is (value in (True, 7, float("inf")))


def problem_of(kind: str, text: str, reference: str, returns: str) -> str:
    return f"""\
summary: a test
kind: {kind}
category: test
entry: "tried(self: Tensor) -> {returns}"
dtypes: {{required: [float32]}}
arguments:
  self: {{access: read, shape: "(n, 2)", draw: "normal()"}}
cases: {{check: [{{n: 3}}]}}
{text}
reference: "{reference}"
tolerance: {{rule: exact}}
doc: A test.
"""


def test_what_cannot_show_in_a_kind_of_operator_does_not_apply(tmp_path: Path) -> None:
    def words(text: str, mutant: str) -> str:
        path = tmp_path / "aten" / "tried.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return why_not(mutant, load_problem(path).overloads[0])

    plain = problem_of("sync", "", "torch.is_complex(self)", "Scalar")
    assert words(plain, "zeros") == "not applicable: the result is a Python value"
    assert words(plain, "another_type") == ""
    undefined = problem_of("creation", "values: undefined", "torch.zeros_like(self)", "Tensor")
    assert words(undefined, "zeros") == "not applicable: no value of the result is defined"
    assert words(undefined, "other_dtype") == ""
