"""Baselines that need torch but no GPU: what loads here, what says why not, and vLLM's declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines import cublas, routines, vllm, vllm_operators  # noqa: E402
from kgbench.baselines.registry import Unavailable, load_baseline  # noqa: E402
from kgbench.baselines.vllm_operators import OPERATORS  # noqa: E402
from kgbench.core.details.failures import Crash, Deadline, Limit  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.harness.clock.library import crash_advice  # noqa: E402
from kgbench.harness.workers.handle import WorkerFailed  # noqa: E402
from kgbench.problem.registry import Registry, load_problem  # noqa: E402

pytestmark = pytest.mark.torch
SCHEMAS = (Path(__file__).parent / "data" / "vllm-0.20.2-schemas.txt").read_text().splitlines()


ABSENT = {"copy_blocks", "copy_blocks_mla", "gptq_marlin_24_gemm"}
"""What vLLM 0.20.2 does not register any more."""
PROBLEMS = [path for path in Registry().paths.values() if path.parent.name == "vllm"]
KINDS = {
    "Tensor": "Tensor", "Tensor | None": "Tensor?", "list[Tensor]": "Tensor[]", "int": "int", "int | None": "int?",
    "float": "float", "bool": "bool", "str": "str", "dtype": "ScalarType", "dtype | None": "ScalarType?",
}  # fmt: skip
"""The word in a schema for each type of an entry."""
RENAMED = {
    "rms_norm": {"result": "out"},
    "convert_vertical_slash_indexes": {"q_seqlens": "kv_seqlens"},
    "batched_moe_align_block_size": {"sorted_token_ids": "sorted_ids", "experts_ids": "expert_ids"},
}
"""Parameters that an entry names otherwise than the schema: as vLLM's Python does, or so that they say more."""


def schemas_of(operator: vllm_operators.Operator) -> dict[str, str]:
    """By registered name the line on which vLLM 0.20.2 printed it."""
    names = {each.name for each in operator.registrations}
    return {line.partition("(")[0]: line for line in SCHEMAS if line.partition("(")[0] in names}


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_are_declared_as_vllm_declares_them(name: str) -> None:
    operator = OPERATORS[name]
    found, reason = vllm.choose(name, operator, schemas_of(operator), "vLLM 0.20.2")
    if name in ABSENT:
        assert (found, reason) == (None, f"vLLM 0.20.2 has no {name}")
    else:
        assert (found, reason) == (operator.registrations[0], "")


def test_there_is_a_row_for_each_of_the_50_problems() -> None:
    assert len({operator.problem or name for name, operator in OPERATORS.items()}) == 50
    listed = {line.partition("(")[0] for line in SCHEMAS}
    assert listed <= {each.name for operator in OPERATORS.values() for each in operator.registrations}


@pytest.mark.parametrize("path", PROBLEMS, ids=[path.stem for path in PROBLEMS])
def test_an_entry_has_exactly_the_parameters_of_its_row(path: Path) -> None:
    judged = [overload for overload in load_problem(path).overloads if overload.check]
    assert judged
    for overload in judged:
        source, _, name = overload.baseline["cuda"].partition(":")
        operator = OPERATORS[name]
        assert (source, operator.problem or name) == ("vllm", path.stem)
        wanted = (operator.entry or operator.registrations[0].parameters).replace("SymInt", "int").split(", ")
        given = [f"{KINDS[each.type]} {each.name}" for each in overload.signature.parameters]
        other = RENAMED.get(name, {})
        for want, have in zip(wanted, given, strict=True):
            kind, called = want.split(" ")
            assert have in (want, f"{kind} {other.get(called)}"), (overload.name, want, have)


def test_a_changed_declaration_is_named() -> None:
    operator = OPERATORS["rms_norm"]
    schemas = {name: line.replace("Tensor weight", "Tensor? weight") for name, line in schemas_of(operator).items()}
    found, reason = vllm.choose("rms_norm", operator, schemas, "vLLM 9")
    assert found is None
    assert reason == (
        "vLLM 9 declares _C::rms_norm otherwise: parameter 3 is 'Tensor? weight', expected 'Tensor weight'; "
        "install vllm 0.20.2"
    )


def test_another_version_s_registration_is_taken_where_it_fits() -> None:
    name, parameters = "_C::gptq_marlin_gemm", OPERATORS["gptq_marlin_gemm"].registrations[1].parameters
    found, _ = vllm.choose("x", OPERATORS["gptq_marlin_gemm"], {name: f"{name}({parameters}) -> Tensor"}, "")
    assert found is not None
    assert found.name == name
    older = "_C_cache_ops::swap_blocks(Tensor src, Tensor($0! -> ) dst, Tensor block_mapping) -> ()"
    found, _ = vllm.choose("swap_blocks", OPERATORS["swap_blocks"], {"_C_cache_ops::swap_blocks": older}, "")
    assert found is OPERATORS["swap_blocks"].registrations[1]
    assert found.adapter is not None
    assert found.adapter(lambda *given: given)("src", "dst", 64, "mapping") == ("src", "dst", "mapping")


def test_repacking_goes_over_the_experts() -> None:
    weights, perm = torch.arange(6).reshape(3, 2), torch.arange(12).reshape(3, 4)

    def plain(weight: torch.Tensor, *given: object) -> torch.Tensor:
        return weight + sum(int(each.sum()) if isinstance(each, torch.Tensor) else int(str(each)) for each in given)

    gptq, awq = (
        OPERATORS[name].registrations[0].adapter for name in ("gptq_marlin_moe_repack", "awq_marlin_moe_repack")
    )
    assert gptq is not None
    assert awq is not None
    assert gptq(plain)(weights, perm, 1, 2).tolist() == [[9, 10], [27, 28], [45, 46]]
    assert awq(plain)(weights, perm, 1, 2).tolist() == [[3, 4], [5, 6], [7, 8]]


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


def test_a_routine_that_brings_its_signature_is_called() -> None:
    pytest.importorskip("scipy_openblas32")
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    load_baseline("openblas:cublasSrot_v2(ipipixx)", "cpu").call(3, x, 1, y, 1, 0.6, 0.8)
    torch.testing.assert_close(x, torch.tensor([3.8, 5.2, 6.6]))
    torch.testing.assert_close(y, torch.tensor([1.6, 1.4, 1.2]))


@pytest.mark.parametrize("letters", ["ipipis", "ipipidd", "iipipiss", "ipispis", "Uipipixx"])
def test_a_wrong_signature_is_an_error_before_anything_is_called(letters: str) -> None:
    pytest.importorskip("scipy_openblas32")
    with pytest.raises(ValueError, match=r"cublasSrot_v2: '\w+', the key signature of .* cannot be right"):
        load_baseline(f"openblas:cublasSrot_v2({letters})", "cpu")


def test_a_wrong_signature_of_a_routine_that_no_table_has_is_held_against_cblas_h(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("scipy_openblas32")
    monkeypatch.setattr(routines.cublas_api, "declared", lambda routine: None)
    with pytest.raises(ValueError, match=r"cublasSrot_v2: .* 'iipipiss', the key signature .* takes 7 arguments"):
        load_baseline("openblas:cublasSrot_v2(iipipixx)", "cpu")


def test_every_element_type_has_its_number() -> None:
    assert cublas._slot("e")[1](torch.bfloat16) == 14
    with pytest.raises(KeyError):
        cublas._slot("e")[1](torch.int64)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("openblas:cublasSrot_v2(i pi pi x x)", ": look at the key signature in its file"),
        ("cublas:cublasSdot_v2", ": look at the row of cublasSdot_v2 in baselines/routines.py"),
        ("vllm:rms_norm", ": look at the row of rms_norm in baselines/vllm_operators.py"),
        ("mine:call", ": look at mine:call"),
        ("aten:add.Tensor", ""),
    ],
)
def test_a_crash_of_a_library_names_problem_call_and_place(target: str, words: str) -> None:
    crashed = WorkerFailed(cast(Any, None), Outcome.CRASHED, Crash("SIGSEGV"))
    assert crash_advice(crashed, "mine/x", {"": target}) == f"; mine/x calls {target}{words}"
    timeout = WorkerFailed(cast(Any, None), Outcome.TIMEOUT, Deadline(Limit.ANSWER))
    assert crash_advice(timeout, "mine/x", {"": target}) == ""
