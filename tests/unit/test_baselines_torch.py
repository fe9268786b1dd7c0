"""Baselines that need torch but no GPU: what loads here, what says why not, and vLLM's declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines import cublas, routines, vllm  # noqa: E402
from kgbench.baselines.registry import Unavailable, load_baseline  # noqa: E402

pytestmark = pytest.mark.torch
SCHEMAS = (Path(__file__).parent / "data" / "vllm-0.20.2-schemas.txt").read_text().splitlines()


def schema_of(registered: str) -> str:
    """The line on which vLLM 0.20.2 printed this operator."""
    return next(line for line in SCHEMAS if line.startswith(f"{registered}("))


@pytest.mark.parametrize("name", sorted(vllm.OPERATORS))
def test_operators_are_declared_as_vllm_declares_them(name: str) -> None:
    operator = vllm.OPERATORS[name]
    assert vllm.schema_difference(schema_of(operator.registered), operator.parameters) == ""


def test_a_changed_declaration_is_named() -> None:
    schema = schema_of("_C::rms_norm").replace("Tensor weight", "Tensor? weight")
    difference = vllm.schema_difference(schema, vllm.OPERATORS["rms_norm"].parameters)
    assert difference == "parameter 3 is 'Tensor? weight', expected 'Tensor weight'"


def test_a_new_parameter_is_accepted_only_with_a_default() -> None:
    parameters = "Tensor x"
    assert vllm.schema_difference("a::b(Tensor x, int y=0) -> ()", parameters) == ""
    assert vllm.schema_difference("a::b(Tensor x, int y) -> ()", parameters) == "it also needs 'int y'"
    assert vllm.schema_difference("a::b() -> ()", parameters) == "parameter 1 is 'nothing', expected 'Tensor x'"


def test_alias_marks_and_tuples_do_not_confuse_the_declaration() -> None:
    schema = "a::b(Tensor(a!) x, Tensor($1! -> )? y, (int, int)? g=None, *, Tensor(b!) o) -> (Tensor, Tensor)"
    assert vllm.split_parameters(schema) == ["Tensor x", "Tensor? y", "(int, int)? g=None", "Tensor o"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without a GPU would run it")
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("vllm:rms_norm", "vLLM's compiled operators need an NVIDIA GPU"),
        ("cublas:cublasSgemm_v2", "cuBLAS needs an NVIDIA GPU"),
        ("openblas:cublasSgemm_v2", "on a GPU the baseline is cublas"),
        ("aten:mm", "PyTorch sees no CUDA device"),
    ],
)
def test_a_baseline_this_machine_cannot_run_says_why(target: str, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        load_baseline(target, "cuda")


@pytest.mark.parametrize("target", ["aten:no_such_operator", "aten:add.NoSuch", "vllm:no_such", "cublas:no_such"])
def test_an_unknown_operator_is_a_mistake_and_not_a_missing_library(target: str) -> None:
    with pytest.raises(ValueError, match=r"no such operator|add its row"):
        load_baseline(target, "cpu")


def test_libcublas_is_found_in_the_process_map(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libc.so.6\n"
        "7f01-7f02 r-xp 00000000 08:01 12 /opt/with space/libcublasLt.so.13\n"
        "7f02-7f03 rw-p 00000000 00:00 0 \n"
        "7f03-7f04 r-xp 00000000 08:01 13 /opt/with space/libcublas.so.13\n"
    )
    assert cublas._mapped(maps) == Path("/opt/with space/libcublas.so.13")
    maps.write_text("7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libc.so.6\n")
    assert cublas._mapped(maps) is None
    assert cublas._mapped(tmp_path / "absent") is None


def test_a_failed_call_raises_the_status_name() -> None:
    with pytest.raises(cublas.CublasError, match=r"cublasSgemm_v2: CUBLAS_STATUS_INVALID_VALUE \(7\)"):
        cublas.check(7, "cublasSgemm_v2")
    cublas.check(0, "cublasSgemm_v2")


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("cublasDgemv_v2", "scipy_cblas_dgemv"),
        ("cublasZdotc_v2", "scipy_cblas_zdotc_sub"),
        ("cublasCsymv_v2", "scipy_csymv_"),
        ("cublasSgemmBatched_64", "scipy_cblas_sgemm, once per matrix"),
        ("cublasHgemmStridedBatched", "scipy_cblas_sgemm on copies in float32, once per matrix"),
        ("cublasSgeam", "scipy_cblas_somatcopy, scipy_cblas_saxpy"),
        ("cublasSdgmm", "scipy_cblas_scopy, scipy_cblas_sscal"),
        ("cublasCsyrkEx", "scipy_cblas_csyrk"),
    ],
)
def test_openblas_says_what_it_calls(name: str, symbols: str) -> None:
    pytest.importorskip("scipy_openblas32")
    assert load_baseline(f"openblas:{name}", "cpu").notes["symbol"] == symbols


def test_a_symbol_that_the_library_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy_openblas32")
    monkeypatch.setitem(routines.ROUTINES, "cublasSnothing_v2", "ipi")
    with pytest.raises(Unavailable, match="has no scipy_cblas_snothing"):
        load_baseline("openblas:cublasSnothing_v2", "cpu")


def test_a_row_with_too_few_letters_fails_its_own_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy_openblas32")
    monkeypatch.setitem(routines.ROUTINES, "cublasScopy_v2", "ipip")
    x = torch.zeros(3)
    with pytest.raises(ValueError, match="argument"):
        load_baseline("openblas:cublasScopy_v2", "cpu").call(3, x, 1, x, 1)


def test_every_element_type_has_its_number() -> None:
    assert cublas._slot("e")[1](torch.bfloat16) == 14
    with pytest.raises(KeyError):
        cublas._slot("e")[1](torch.int64)
