"""A BLAS routine's signature: its letters, what cuBLAS's and OpenBLAS's headers say of it, and the key in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbench.baselines import cblas_api, cublas_api, routines
from kgbench.baselines.named import looked_up
from kgbench.cli.main import main
from kgbench.core.errors import KgbenchError
from kgbench.problem import blas
from kgbench.problem.registry import load_problem

SROT = Path(__file__).parent / "data" / "problems" / "cublas" / "cublasSrot_v2.yaml"
needs_header = pytest.mark.skipif(cblas_api.header() is None, reason="needs scipy-openblas32")


def srot(folder: Path, *changes: str) -> Path:
    """The problem of a plane rotation, of which nothing else in kgbench knows, with changes: old, new, old, new …"""
    text = SROT.read_text(encoding="utf-8")
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path = folder / "cublas" / SROT.name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- letters ---


@pytest.mark.parametrize(
    ("written", "routine", "letters"),
    [
        ("i pi pi x x", "cublasSrot_v2", "ipipiss"),
        ("ipipixx", "cublasDrot_v2", "ipipidd"),
        ("i pi pi s x", "cublasCrot_v2", "ipipisc"),
        ("i pi r", "cublasScnrm2_v2", "ipir"),
    ],
)
def test_x_is_the_precisions_scalar_and_blanks_mean_nothing(written: str, routine: str, letters: str) -> None:
    assert blas.resolved(written, routine) == letters


@pytest.mark.parametrize(
    ("written", "routine", "words"),
    [
        ("i q", "cublasSrot_v2", "'q' is no letter of a signature"),
        ("i x", "cublasGemmEx", "names none of H, S, D, C and Z"),
        ("  ", "cublasSrot_v2", "one letter per argument"),
    ],
)
def test_wrong_letters_are_named(written: str, routine: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        blas.resolved(written, routine)


# --- the headers ---


def test_the_header_alone_suggests_every_row() -> None:
    """So a draft's letters are those that a person wrote."""
    suggested = {name: cublas_api.declared(name) for name in routines.ROUTINES}
    assert {name: "".join(each.likely() for each in found or ()) for name, found in suggested.items()} == (
        routines.ROUTINES
    )


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("ipipiss", ""),
        ("ipipipp", ""),  # cuBLAS takes scalars on the device too: types alone do not tell
        ("ipipis", "it has 6 letters, and cuBLAS 13.10 declares 7 arguments: int n, float* x"),
        ("ipipidd", "argument 6 is 'const float* c' in cuBLAS 13.10, not 'd', float64 scalar"),
        ("isipiss", "argument 2 is 'float* x' in cuBLAS 13.10, not 's'"),
        ("IpIpIss", "argument 1 is 'int n' in cuBLAS 13.10, not 'I'"),
        ("iaiaiss", "argument 2 is 'float* x' in cuBLAS 13.10, not 'a'"),
    ],
)
def test_letters_are_held_against_cublas_s_header(letters: str, words: str) -> None:
    assert cublas_api.difference("cublasSrot_v2", letters).startswith(words)
    assert bool(words) is bool(cublas_api.difference("cublasSrot_v2", letters))


def test_a_routine_with_64_bit_integers_is_declared_as_the_one_without() -> None:
    assert cublas_api.difference("cublasSrot_v2_64", "IpIpIss") == ""
    assert cublas_api.difference("cublasSgemmStridedBatched_64", routines.letters("cublasSgemmStridedBatched_64")) == ""
    assert cublas_api.declared("cublasNothing_64") is None


@needs_header
def test_every_row_of_a_routine_that_openblas_has_is_as_cblas_h_declares_it() -> None:
    """The order flag included, which is derived: with one too many, CBLAS would read 102 as a size."""
    assert {name: why for name in routines.ROUTINES if (why := cblas_api.why_not(name, routines.letters(name)))} == {}


@needs_header
@pytest.mark.parametrize(
    ("routine", "letters", "words"),
    [
        ("cublasSrot_v2", "ipipiss", ""),
        ("cublasSnrm2_v2", "ipir", ""),
        ("cublasCsrot_v2", "ipipiss", ""),
        ("cublasChemv_v2", "Uicpipicpi", ""),
        ("cublasSrot_v2", "ipisips", "argument 4 of cblas_srot is an address in cblas.h"),
        ("cublasSrot_v2", "ipipis", "cblas_srot takes 7 arguments in cblas.h, and 'ipipis' has 6"),
        ("cublasSrot_v2", "iipipiss", "cblas_srot takes 7 arguments in cblas.h, and 'iipipiss' has 8"),
        ("cublasSnrm2_v2", "ipip", "cblas_snrm2 returns a scalar, so the signature ends with 'r', not 'p'"),
        ("cublasIsamax_v2", "ipir", "cublasIsamax_v2 is no routine of CBLAS"),
    ],
)
def test_letters_are_held_against_cblas_h(routine: str, letters: str, words: str) -> None:
    found = cblas_api.why_not(routine, letters)
    assert found.startswith(words)
    assert bool(words) is bool(found)


@pytest.mark.parametrize(
    ("letters", "has"),
    [("ipipiss", False), ("ispi", False), ("iispipipi", True), ("Uispipi", True), ("TTiiispipispi", True)],
)
def test_the_order_is_passed_where_there_is_a_matrix(letters: str, has: bool) -> None:
    assert cblas_api.has_matrix(letters) is has


# --- the key ---


def test_a_routine_without_a_row_brings_its_signature(tmp_path: Path) -> None:
    assert "cublasSrot_v2" not in routines.ROUTINES
    overload = load_problem(srot(tmp_path)).overloads[0]
    call = "cublasSrot_v2(i pi pi x x)"
    assert overload.baseline == {"cuda": f"cublas:{call}", "cpu": f"openblas:{call}"}
    assert routines.letters("cublasSrot_v2(ipipixx)") == "ipipiss"
    assert [each.wrong for each in looked_up(overload, (tmp_path,))] == ["", ""]


@pytest.mark.parametrize(
    ("old", "new", "number", "words"),
    [
        ('"i pi pi x x"', '"i pi pi x q"', "KGB258", "signature: 'q' is no letter of a signature; there are T U L D"),
        ('"i pi pi x x"', '"i pi pi x"', "KGB258", "signature: it has 6 letters, and entry has 7 parameters"),
        ('"i pi pi x x"', '"i pi xi p x"', "KGB258", "'s' (float32 scalar in host memory) is for type float or Scalar"),
        ("tolerance:", "baseline: {cpu: 'aten:add.Tensor'}\ntolerance:", "KGB224", "and baseline names none"),
    ],
)
def test_a_wrong_signature_is_a_complaint_with_its_line(
    tmp_path: Path, old: str, new: str, number: str, words: str
) -> None:
    path = srot(tmp_path, old, new)
    with pytest.raises(KgbenchError) as caught:
        load_problem(path)
    assert caught.value.printed.startswith(f"{number}: {path}:5: signature: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # The entry agrees with the letters, and neither with the header.
        (
            ("i pi pi x x", "i pi pi x", ", c: float, s: float", ", c: float", "c: 0.6, s: -0.8", "c: 0.6",
             ", c: 0.0, s: 1.0", "", ", c: 0.28, s: 0.96", "", "incy, c, s)", "incy, c, s=0.5)"),
            "declares 7 arguments: int n, float* x",
        ),
        (("i pi pi x x", "i pi pi d d"), "argument 6 is 'const float* c' in cuBLAS 13.10, not 'd'"),
        (("i pi pi x x", "i ai pi x x"), "argument 2 is 'float* x' in cuBLAS 13.10, not 'a', array of pointers"),
    ],
)  # fmt: skip
def test_validate_holds_a_signature_against_the_header(tmp_path: Path, changes: tuple[str, ...], words: str) -> None:
    path = srot(tmp_path, *changes)
    done = CliRunner().invoke(main, ["validate", "--no-run", str(path)])
    assert done.exit_code == 2, done.output
    assert done.stdout.startswith(f"wrong  KGB247: {path}:5: signature: 'cublas:cublasSrot_v2(")
    assert words in done.stdout


def test_a_row_and_a_key_must_agree() -> None:
    assert routines.letters("cublasSaxpy_v2(ixpipi)") == routines.letters("cublasSaxpy_v2")
    with pytest.raises(ValueError, match=r"key signature says 'ispip', and its row in baselines/routines.py 'ispipi'"):
        routines.letters("cublasSaxpy_v2(ispip)")


def test_what_the_table_lacks_is_not_called_right(tmp_path: Path) -> None:
    """A newer cuBLAS may have it."""
    path = srot(tmp_path, "cublasSrot_v2", "cublasSrotNew_v2")
    new = path.with_name("cublasSrotNew_v2.yaml")
    path.rename(new)
    found = {each.target.partition(":")[0]: each for each in looked_up(load_problem(new).overloads[0], (tmp_path,))}
    assert found["cublas"].unseen == "cuBLAS 13.10 declares no cublasSrotNew_v2; a newer one may"
    assert found["openblas"].wrong or found["openblas"].unseen
