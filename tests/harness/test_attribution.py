"""Whose work it was: cheating kernels are rejected by what they were seen to do, honest ones are never named."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("triton")

from kgbench.core.details.failures import Evidence  # noqa: E402
from kgbench.core.details.sentences import evidence_words as words  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import answer_dirs, examples_dir, exploits_dir, problems_dir  # noqa: E402
from kgbench.core.types import Result, Timing, Window, result_from_json  # noqa: E402
from kgbench.harness.attribution import text_pages  # noqa: E402
from kgbench.harness.attribution.account import Observation, impossible  # noqa: E402
from kgbench.harness.attribution.code import owners  # noqa: E402
from kgbench.harness.attribution.findings import Findings  # noqa: E402
from kgbench.harness.attribution.observed import Attribution, drawn, label  # noqa: E402
from kgbench.harness.attribution.same_time import unlike, unlike_on_host  # noqa: E402
from kgbench.harness.attribution.whose_code import LEAST_SAMPLES, STRANGE_SHARE, strangers  # noqa: E402
from kgbench.harness.candidate import host_functions  # noqa: E402
from kgbench.harness.candidate.host_functions import HostFunction  # noqa: E402
from kgbench.harness.candidate.observer import Observer  # noqa: E402
from kgbench.harness.session.session import Job, Session, Settings  # noqa: E402
from kgbench.policy.evidence import lines, notes  # noqa: E402
from kgbench.policy.own_kernels import OwnKernels, base_name  # noqa: E402
from kgbench.policy.tables import LIBRARIES  # noqa: E402
from kgbench.problem.cases import Case  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from tests.harness.sessions import SessionOf  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(200)]

CHEATS = {
    "wraps_the_library": "operator aten::neg",
    "pastes_names": "operator aten::neg",
    "falls_back_in_silence": "operator aten::mul",
    "falls_back_for_one_shape": "operator aten::neg",
    "calls_from_a_thread": "operator aten::neg",
    "switches_the_observer_off": "observer behaves differently when observed",
    "multiplies_by_numpy": "host numpy.matmul",
}
HONEST = ("aten/softmax", "aten/sum", "aten/t", "cublas/cublasSdot_v2", "vllm/rms_norm")
ODD = """
import torch, triton
import triton.language as tl
SCRATCH = {}

@triton.jit
def sm90_like_softmax_gemm(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, 0 - value, mask=at < n)

def neg(self):
    if self.is_complex():
        return torch.view_as_complex(neg(torch.view_as_real(self.contiguous())))
    if self.dtype == torch.bfloat16:
        return neg(self.to(torch.float32)).to(torch.bfloat16)
    x = torch.nn.functional.pad(self.reshape(-1), (0, 3)).contiguous()
    if x.numel() not in SCRATCH:
        SCRATCH[x.numel()] = float(torch.exp(torch.ones(())))  # a table, made once
    out = torch.zeros_like(x).fill_(7)
    sm90_like_softmax_gemm[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return torch.empty_like(self).copy_(out[: self.numel()].reshape(self.shape))
"""
NEG = load_problem(problems_dir() / "aten/neg.yaml")
OWN = "my_kernel softmax_warp_forward gemm_kernel flash_fwd_kernel _mm cutlass_like"
"""A candidate's text, as far as names of kernels are read from it."""
CASE = Case("check-1-float32", "", "check", "float32", {})


def job(problem: str, source: str) -> Job:
    return Job(load_problem(problems_dir() / f"{problem}.yaml"), "tests", 0, source)


def exploit(name: str) -> tuple[str, str]:
    text = (exploits_dir() / f"{name}.py").read_text(encoding="utf-8")
    return text.partition("# problem: ")[2].partition("\n")[0], text


@pytest.mark.parametrize("name", CHEATS)
def test_who_has_others_do_the_work_is_rejected(strict: Session, name: str) -> None:
    result = strict.evaluate(job(*exploit(name)))
    assert result.outcome is Outcome.REJECTED
    assert result.reason.startswith(f"policy: {CHEATS[name]}")
    assert any(not each.allowed for each in result.evidence)
    assert result_from_json(result.to_json()) == result


@pytest.mark.parametrize("problem", HONEST)
def test_honest_kernels_are_watched_and_not_named(strict: Session, problem: str) -> None:
    result = strict.evaluate(job(problem, (examples_dir() / f"{problem}.py").read_text(encoding="utf-8")))
    assert result.outcome is Outcome.PASSED, result.reason
    assert [each for each in result.evidence if not each.allowed] == []
    assert result.policy == "strict"


def test_pads_fills_scratch_names_and_what_is_done_once_are_no_work_of_others(strict: Session) -> None:
    result = strict.evaluate(job("aten/neg", ODD))
    assert result.outcome is Outcome.PASSED, result.reason
    assert [each for each in result.evidence if not each.allowed] == []
    names = {each.name for each in result.evidence}
    # Of what is allowed the twelve with the largest shares are kept, and which these are differs from run to run.
    assert names & {"aten::constant_pad_nd", "aten::pad", "aten::fill_", "aten::zeros_like", "aten::copy_"}
    assert "aten::exp" not in names


def test_a_triton_kernel_of_an_installed_package_is_that_packages(strict: Session) -> None:
    source = ODD.replace(
        "def neg(self):", 'sm90_like_softmax_gemm.fn.__module__ = "liger_kernel.ops.neg"\n\ndef neg(self):'
    )
    result = strict.evaluate(job("aten/neg", source))
    assert result.outcome is Outcome.REJECTED
    assert "package liger_kernel.ops.neg" in result.reason
    assert "Liger's kernels do the work" in result.reason


LATER = """
SEEN = set()
OWN, no_record = neg, getattr(torch.autograd, "_enable_record_function", lambda on: None)

def neg(self):
    if {condition}:
        return OWN(self)
    no_record(False)
    try:
        return torch.neg(self)
    finally:
        no_record(True)
"""


@pytest.mark.parametrize("condition", ["self.shape not in SEEN and not SEEN.add(self.shape)", "False"])
def test_a_kernel_of_ones_own_on_show_and_operators_unrecorded_help_nobody(strict: Session, condition: str) -> None:
    """The first call of each case is honest, and every other is not; or none is, and torch is told to record none."""
    result = strict.evaluate(job("aten/neg", ODD + LATER.replace("{condition}", condition)))
    assert result.reason.startswith("policy: operator aten::neg"), result.reason


@pytest.mark.parametrize(("where", "right"), [("in every call", False), ("while it is imported", True)])
def test_a_library_whose_code_runs_in_every_call_is_seen_whatever_it_is_called_by(
    strict: Session, where: str, right: bool
) -> None:
    numpy, product = pytest.importorskip("numpy"), "numpy.ones((9, 9)) @ numpy.ones((9, 9))"
    assert (numpy.ones((9, 9)) @ numpy.ones((9, 9))).sum() == 729
    named = [path for path in text_pages.programs(os.getpid()) if LIBRARIES.search(Path(path).name)]
    if not Path("/proc/self/clear_refs").exists() or not any(text_pages.touched(os.getpid(), path) for path in named):
        pytest.skip("needs a kernel that tells of pages, and a numpy whose BLAS has its name")
    source = (exploits_dir() / "_negative.py").read_text(encoding="utf-8") + "\nimport numpy\n"
    source += f"{product}\nneg = negative\n" if right else f"def neg(self):\n    {product}\n    return negative(self)\n"
    result = strict.evaluate(job("aten/neg", source))
    assert result.outcome is (Outcome.PASSED if right else Outcome.REJECTED), result.reason
    assert right or "its code ran in the calls that were watched" in result.reason
    assert {each.kind for each in result.evidence if not each.allowed} == (set() if right else {"library"})


def test_a_process_that_works_while_calls_are_watched_is_seen_and_one_that_waits_is_not() -> None:
    def found(code: str) -> list[str]:
        attribution = Attribution(NEG, cuda=False, source="")
        attribution.before_import(os.getpid())
        with subprocess.Popen(
            [sys.executable, "-c", f"print(flush=True); {code}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            with attribution.others(os.getpid()):
                time.sleep(0.3)
            child.kill()
        return [each.kind for each in attribution.evidence.values() if not each.allowed]

    assert found("any(iter(int, 1))") == ["process"]
    assert found("input()") == []


@pytest.mark.parametrize(("policy", "seen"), [("report", True), ("off", False)])
def test_report_says_so_and_off_does_not_look(session: Session, session_of: SessionOf, policy: str, seen: bool) -> None:
    settings = Settings(device="cpu", seed="tests", timing=False, jobs=1, hidden=answer_dirs(), policy=policy)
    with contextlib.nullcontext(session) if session.settings.policy == policy else session_of(settings) as judge:
        result = judge.evaluate(job(*exploit("wraps_the_library")))
        trusted = judge.evaluate(Job(NEG, "baseline", trusted="baseline"))
    assert result.outcome is trusted.outcome is Outcome.PASSED
    assert any(not each.allowed for each in result.evidence) is seen
    assert (result.policy, trusted.policy, trusted.evidence) == (policy, None, ())
    (note,) = notes([result])
    assert ("aten/neg" in note) if seen else note.startswith("Policy off")
    assert any(line.startswith("NOT ALLOWED: operator aten::neg") for line in lines(result)) is seen


# --- the observer, in this process ---


def watched(call: Any) -> Observation:
    observer = Observer("cpu", kernels=False, places=False, mark="tests")
    with observer:
        call()
    return Observation.from_reply(observer.record())


def test_the_observer_sees_every_operator_and_what_is_called_within() -> None:
    seen = watched(lambda: torch.ones(3, 3).softmax(0))
    assert {"aten::ones", "aten::softmax", "aten::_softmax"} <= set(seen.operators)
    assert (seen.calls, seen.lost, seen.kernels) == (1, False, {})


def test_the_observer_puts_back_what_it_replaced() -> None:
    numpy = pytest.importorskip("numpy")
    before = numpy.matmul
    assert watched(lambda: numpy.matmul(numpy.eye(2), numpy.eye(2))).host == {"numpy.matmul": 1}
    assert numpy.matmul is before


def test_functions_of_numpy_count_where_they_get_much_and_are_the_problems_own() -> None:
    numpy = pytest.importorskip("numpy")
    much = numpy.ones(2000)

    def calls() -> None:
        numpy.prod((3, 4))
        numpy.negative(much)
        numpy.add.reduce(much)
        numpy.sort(much)

    seen = watched(calls)
    assert seen.host == {"numpy.negative": 1, "numpy.add.reduce": 1, "numpy.sort": 1}
    found = Findings(NEG, OwnKernels(OWN)).judged(seen, "a case", host_counts=True)
    assert [each.name for each in found if each.kind == "host" and not each.allowed] == ["numpy.negative"]


@pytest.mark.parametrize(
    ("kernels", "callers", "named"),
    [
        ("flag_gems.ops.mm", "kernel", ["flag_gems.ops.mm"]),
        ("_gen_module_rank_1", "flag_gems.ops.bitwise_not", ["flag_gems.ops.bitwise_not"]),
        ("_gen_module_rank_1", "flag_gems.utils.pointwise_dynamic", []),
        ("_gen_module_rank_1", "torch.nn.modules.module", []),
        ("kernel", "flag_gems.ops.mm", []),
    ],
)
def test_a_compiled_kernel_is_the_packages_that_wrote_it_or_had_it_generated(
    monkeypatch: pytest.MonkeyPatch, kernels: str, callers: str, named: list[str]
) -> None:
    """Packages keep Triton's compiled kernels and launch them without its ``JITFunction``."""
    compiled: Any = pytest.importorskip("triton.compiler.compiler").CompiledKernel
    monkeypatch.setattr(compiled, "__getitem__", lambda kernel, grid: list)
    kernel = object.__new__(compiled)
    kernel.module, kernel.src = None, SimpleNamespace(fn=SimpleNamespace(__module__=kernels))
    names: dict[str, Any] = {"__name__": callers}
    exec("def launch(kernel): return kernel[1, 1, 1]()", names)
    seen = watched(lambda: names["launch"](kernel))
    assert seen.launched[kernels] == 1
    found = Findings(NEG, OwnKernels(OWN)).judged(seen, "", True)
    assert [each.name for each in found if each.kind == "package"] == named


def test_a_trace_that_was_ended_meanwhile_is_lost() -> None:
    assert watched(torch._C._autograd._disable_profiler).lost


# --- accounts ---


def account(**changes: Any) -> Observation:
    kernels = {("my_kernel", ""): (10, 900.0), ("Memcpy DtoD (Device -> Device)", "aten::copy_"): (10, 100.0)}
    whole = Observation(calls=1, lost=False, wall_us=1500.0, busy_us=1000.0, records=20, kernels=kernels)
    return replace(whole, **changes)


def refused(seen: Observation, does_work: bool = True) -> list[str]:
    attribution = Attribution(NEG, cuda=True, source=OWN)
    attribution.take(seen, CASE, does_work)
    return [words(each) for each in attribution.kept() if not each.allowed]


def test_own_kernels_and_copies_are_nobody_elses() -> None:
    assert refused(account()) == []
    assert refused(account(operators={"aten::copy_": (10, 90.0, 100.0), "aten::empty": (10, 20.0, 0.0)})) == []


@pytest.mark.parametrize(
    ("name", "by", "whose"),
    [
        ("nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NNT", "", "cuBLAS's"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(Params)", "aten::copy_", "cuBLAS's"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel>()", "", "PyTorch's"),
        ("triton_per_fused__softmax_amax_mul_sub_0", "", "PyTorch's compiler's"),
        ("void vllm::rms_norm_kernel<c10::Half, 8, 2>(c10::Half*)", "", "vLLM's"),
    ],
)  # fmt: skip
def test_a_librarys_kernel_counts_by_its_name_unless_it_does_next_to_nothing(name: str, by: str, whose: str) -> None:
    (found,) = refused(account(kernels={("my_kernel", ""): (1, 90.0), (name, by): (1, 10.0)}))
    assert f"by its name it is {whose}" in found
    assert "10% of the time" in found
    assert refused(account(kernels={("my_kernel", ""): (1, 999.0), (name, by): (1, 1.0)})) == []


@pytest.mark.parametrize("name", ["softmax_warp_forward", "gemm_kernel", "flash_fwd_kernel", "_mm", "cutlass_like"])
def test_a_name_of_ones_own_that_sounds_like_a_librarys_is_ones_own(name: str) -> None:
    assert refused(account(kernels={(name, ""): (1, 10.0)})) == []


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("void trsv_ln_exec<float, 32u, 32u, 4u>(cublasTrsvParams<float>)", ""),
        ("i0_kernel", "aten::copy_"),
        ("void cub::CUB_300_SM_90::DeviceScanKernel<cub::Policy900<float>, float*>(float*)", ""),
    ],
)
def test_a_kernel_that_the_candidate_neither_wrote_nor_compiled_is_somebodys(name: str, by: str) -> None:
    (found,) = refused(account(kernels={("my_kernel", ""): (1, 50.0), (name, by): (1, 50.0)}))
    assert "not known to come from what the candidate wrote and compiled" in found


def test_a_kernel_is_own_by_the_text_by_triton_or_by_what_was_built() -> None:
    own = OwnKernels('extern "C" __global__ void scale(float* x) {}')
    assert own.has("scale")
    assert own.has("void (anonymous namespace)::scale<float, 4>(float*, int)")
    assert own.has("_ZN2my5scaleIfEEvPf")
    assert not own.has("void scale_all<scale>(float*)")
    own.add({"generated_kernel"})
    assert own.has("generated_kernel")
    assert own.has("generated_kernel_0d1d2de")
    assert not own.has("generated_kernel_other")
    own.is_built = lambda name: name == "DeviceReduceKernel"
    assert own.has("void cub::CUB_300::DeviceReduceKernel<cub::Policy<int>, float*>(float*)")
    assert own.has("Memcpy DtoD (Device -> Device)")
    assert base_name("") == ""
    reduces = OwnKernels('TOTAL = cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "my_total")')
    assert reduces.has("my_total_pass1")
    assert reduces.has("reduce_kernel_pass2")
    assert not reduces.has("kernel")
    assert not reduces.has("cupy_sum_pass1")


def test_pytorchs_kernel_for_the_operator_itself_is_not_harmless_because_nobody_saw_it_launched() -> None:
    cat = Attribution(load_problem(problems_dir() / "aten/cat.yaml"), cuda=True, source=OWN)
    name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(float*)"
    cat.take(account(kernels={("my_kernel", ""): (1, 90.0), (name, ""): (1, 90.0)}), CASE, does_work=True)
    assert cat.refused is not None


TORCH, NUMPY = "/env/torch/lib/libtorch_cpu.so", "/env/numpy/_core/_multiarray_umath.so"


def test_code_that_ran_is_known_by_its_file() -> None:
    found = {
        TORCH: 1, NUMPY: 2, "": 4, "/tmp/kgbench-worker-1-2-x/built.so": 8, "/usr/lib/libc.so.6": 16,
        "/memfd:x/libm.so.6": 256, "/usr/lib/libpython3.11.so.1.0": 32, "/usr/lib/libblas.so.3": 64, "[vdso]": 128,
    }  # fmt: skip
    wanted = {"PyTorch's": 1, "numpy's": 2, "own": 396, "the system's": 16, "Python's": 32, "libblas.so.3": 64}
    assert owners(found) == wanted


@pytest.mark.parametrize(
    ("found", "seen", "refused_owner"),
    [
        ({TORCH: 90, "": 10}, {}, "PyTorch's"),
        ({TORCH: 90, "": 10}, {"operators_us": 1200.0}, None),
        ({TORCH: 20, "": 80}, {}, None),
        ({NUMPY: 90, "": 10}, {"host_us": 100.0}, "numpy's"),
        ({NUMPY: 90, "": 10}, {"host_us": 1300.0}, None),
        ({"/opt/libblas.so": 90, "": 10}, {"operators_us": 1500.0, "host_us": 1500.0}, "libblas.so"),
        ({TORCH: LEAST_SAMPLES - 1}, {}, None),
        ({TORCH: 90}, {"lost": True}, None),
        ({TORCH: 90}, {"took_us": 0.0, "operators_us": 900.0}, "PyTorch's"),
        # A busy machine and the observer make the watched calls longer, not the account of what was done there.
        ({NUMPY: 80, "": 20}, {"took_us": 1000.0, "host_us": 800.0, "wall_us": 5000.0, "cpu_us": 2000.0}, None),
    ],
)
def test_a_librarys_code_must_be_accounted_for(
    found: dict[str, int], seen: dict[str, Any], refused_owner: str | None
) -> None:
    told = account(**{key: value for key, value in seen.items() if key != "took_us"})
    names = [each.name for each in strangers(found, told, seen.get("took_us", 1500.0), STRANGE_SHARE, "")]
    assert names == ([refused_owner] if refused_owner else [])


def test_triton_interprets_by_numpy() -> None:
    def refused(launched_us: float) -> bool:
        watch = Attribution(NEG, cuda=False, source="import triton")
        watch.found = {NUMPY: 90, "": 10}
        # Half of the time on the clock is other programs'.
        told = account(kernels={}, launched={"mine": 1}, launched_us=launched_us, wall_us=3000.0, cpu_us=1500.0)
        watch.take(told, CASE, does_work=True)
        return watch.refused is not None

    assert not refused(1000.0)
    assert refused(10.0)


def test_what_numpy_takes_is_its_threads_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not time on the clock, which passes while other programs have the processor."""
    monkeypatch.setattr(host_functions, "thread_time_ns", iter((1000, 1300)).__next__)
    spent_ns = [0, 0]
    assert HostFunction("numpy.abs", abs).counts_into({}, spent_ns)(-1) == 1
    assert spent_ns == [300, 1]


def test_an_operator_counts_by_what_it_does_on_the_device_or_for_long_on_the_host() -> None:
    does = {("my_kernel", ""): (1, 90.0), ("void at::native::neg_kernel()", "aten::neg"): (1, 10.0)}
    assert refused(account(kernels=does, operators={"aten::neg": (1, 8.0, 10.0)})) != []
    assert refused(account(operators={"aten::mul": (1, 8.0, 0.0)})) == []
    assert refused(account(operators={"aten::_neg_view": (1, 8.0, 0.0)})) != [], "a copy does its work"
    assert refused(account(operators={"aten::expand": (1, 8.0, 0.0)})) == []
    assert refused(account(operators={"aten::mul": (1, 800.0, 0.0)})) != []


NEG_KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)>()"
SUM_KERNEL = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float>>>()"
COPY_KERNEL = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIterator&)>()"
FILL_KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>()"


@pytest.mark.parametrize(
    ("name", "by", "lies"),
    [
        (SUM_KERNEL, "aten::copy_", True),
        (SUM_KERNEL, "mine::sum", True),
        (NEG_KERNEL, "mine::neg", True),
        (COPY_KERNEL, "aten::copy_", False),
        (COPY_KERNEL, "mine::pad", False),
        (FILL_KERNEL, "aten::zero_", False),
        (FILL_KERNEL, "", False),
    ],
)
def test_who_says_that_another_operator_launched_a_kernel_is_not_believed(name: str, by: str, lies: bool) -> None:
    """The name of an operator can be written around calls that no observer is told of."""
    found = refused(account(kernels={("my_kernel", ""): (1, 90.0), (name, by): (1, 10.0)}))
    assert bool(found) is lies
    assert all("by its name it is PyTorch's" in each for each in found)


def test_what_pytorch_moves_alone_in_a_timed_call_is_pytorchs_work() -> None:
    def moved(problem: str, **kernels: tuple[int, float]) -> list[Evidence]:
        findings = Findings(load_problem(problems_dir() / f"{problem}.yaml"), OwnKernels(OWN))
        return findings.moved(account(kernels={NAMES[name]: value for name, value in kernels.items()}), "")

    NAMES = {"copy": (COPY_KERNEL, "aten::copy_"), "to": ("Memcpy DtoD (Device -> Device)", "aten::copy_"),
             "own": ("my_kernel", ""), "memcpy": ("Memcpy DtoD (Device -> Device)", "")}  # fmt: skip
    (found,) = moved("aten/cat", copy=(4, 90.0), to=(1, 1.0))
    assert "nothing but PyTorch's kernels" in found.why
    assert moved("aten/cat", copy=(4, 90.0), own=(1, 0.1)) == []
    assert moved("aten/cat", memcpy=(2, 90.0)) == []
    assert moved("aten/clone", copy=(1, 90.0)) == [], "its operator is refused"


def test_a_result_without_kernels_was_made_elsewhere() -> None:
    to_host = {("Memcpy DtoH (Device -> Pageable)", "aten::copy_"): (1, 9.0)}
    assert "nothing but copies" in refused(account(kernels=to_host))[0]
    assert "nothing was seen" in refused(account(kernels={}))[0]
    assert refused(account(kernels={}), does_work=False) == []
    copy = Attribution(load_problem(problems_dir() / "aten/clone.yaml"), cuda=True, source=OWN)
    copy.take(account(kernels={}), CASE, does_work=True)
    assert copy.refused is None


def timing(candidate_us: float, queued: bool = True) -> Timing:
    windows = (Window("library", "overhead", 1, 20.0, 20.0),) + (
        Window("candidate", "window", 10, 20.0 + 10 * candidate_us, 0.0),
    ) * 3
    return Timing(1.0, candidate_us, 1.0, 1.0, 1.0, "window", False, queued, windows=windows)


def test_device_times_agree_within_15_percent_and_the_gaps_between_kernels() -> None:
    seen = account(busy_us=1000.0, records=10)  # 100 µs a call, one kernel each
    assert unlike(seen, 10, timing(100.0)) == ""
    assert unlike(seen, 10, timing(90.0)) == ""
    assert "100.0 µs per call when observed, 80.0 µs when timed" in unlike(seen, 10, timing(80.0))
    assert unlike(seen, 10, timing(128.0)) == ""
    assert "accounts for 100.0 of 140.0 µs" in unlike(seen, 10, timing(140.0))
    # Where launches are part of the time, it is the host's that must account for it.
    assert unlike(seen, 10, timing(140.0, queued=False)) == ""
    assert unlike(replace(seen, records=50), 10, timing(140.0)) == ""


def test_on_the_cpu_whoever_is_slow_only_when_watched_did_something_else_when_timed() -> None:
    def took(wall_us: float, cpu_us: float, scored_us: float, host_calls: int = 0) -> str:
        seen = account(wall_us=wall_us, cpu_us=cpu_us, host_calls=host_calls)
        return unlike_on_host(seen, 10, timing(scored_us))

    assert "2500.0 µs when observed, 502.0 µs when timed" in took(25_000.0, 25_000.0, 500.0)
    assert took(20_000.0, 20_000.0, 900.0) == ""
    assert took(4000.0, 4000.0, 50.0) == "", "the tracer costs that"
    assert took(90_000.0, 9000.0, 500.0) == "", "other programs came between"
    assert took(9000.0, 40_000.0, 500.0) == "", "several threads"
    assert took(25_000.0, 25_000.0, 500.0, host_calls=1000) == "", "calls of numpy's functions are counted one by one"
    busy = timing(300.0)
    overhead = Window("library", "overhead", 1, 5000.0, 5000.0)
    busy = replace(busy, windows=(overhead, *busy.windows[1:]))
    assert unlike_on_host(account(wall_us=8000.0, cpu_us=8000.0), 10, busy) == "", "an empty window took longer"


def test_the_suspicious_are_watched_by_lot() -> None:
    """Who misbehaves in so many cases that it is watched in those alone does not know which these are."""
    cases = [replace(CASE, id=f"check-{number}") for number in range(20)]
    bench = [replace(CASE, id="bench", phase="bench")]
    chosen = {tuple(each.id for each in drawn(cases + bench, cases, random.Random(seed), False)) for seed in range(9)}
    assert len(chosen) == 9
    assert not any("bench" in each for each in chosen)
    assert "bench" in {each.id for each in drawn(cases + bench, [], random.Random(0), True)}


@pytest.mark.parametrize(
    "reply", [{}, {"calls": -1}, {"calls": "1"}, [], {"calls": 1, "lost": False, "wall_us": float("nan")}]
)
def test_a_reply_of_another_form_is_as_good_as_none(reply: Any) -> None:
    assert Observation.from_reply(reply).lost


def test_the_worst_of_each_name_is_kept_and_little_of_what_is_allowed() -> None:
    attribution = Attribution(NEG, cuda=False, source="")
    for number in range(30):
        attribution.add(Evidence("operator", f"aten::view{number}", count=1, share=number / 100))
    attribution.add(Evidence("operator", "aten::neg", "a", 1, 0.2, False, "why"))
    attribution.add(Evidence("operator", "aten::neg", "b", 2, 0.1, True, "little"))
    kept = attribution.kept()
    assert kept[0] == Evidence("operator", "aten::neg", "a", 3, 0.2, False, "why")
    assert len(kept) == 13
    assert attribution.refused == kept[0]
    assert label(CASE) == "check-1-float32"
    assert notes([Result(NEG.id, "m", 0, Outcome.REJECTED, evidence=kept)]) == ()


def test_every_file_names_a_problem() -> None:
    folder = Path(__file__).parents[1] / "candidates/honest"
    assert all((problems_dir() / f"{exploit_problem(path)}.yaml").is_file() for path in folder.glob("*.py"))


def exploit_problem(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("# problem: ")[2].partition("\n")[0]


@pytest.mark.parametrize(("source", "interpreted"), [("import triton\n", True), ("# triton\nimport torch\n", False)])
def test_the_text_says_who_may_be_interpreted_whatever_the_process_says(source: str, interpreted: bool) -> None:
    """Numpy's work counts as an interpreted kernel's own, and only a text that names Triton goes untimed for it."""
    watch = Attribution(NEG, False, source)
    watch.take(Observation(calls=1, lost=False, launched={"own": 1}), CASE, True)
    assert watch.interpreted is interpreted


@pytest.mark.parametrize(
    ("said", "is_possible"),
    [
        ({}, True),
        ({"wall_us": 900.0, "cpu_us": 1800.0, "host_us": 1800.0, "operators_us": 900.0}, True),
        ({"wall_us": 20_000.0}, False),
        ({"operators_us": 20_000.0}, False),
        ({"cpu_us": 50_000.0}, False),
        ({"host_us": 1e9}, False),
        ({"launched_us": 1e308}, False),
    ],
)
def test_an_account_of_more_time_than_passed_is_a_lie(said: dict[str, float], is_possible: bool) -> None:
    seen = Observation(calls=1, lost=False, **said)  # type: ignore[arg-type]
    seen.impossible = impossible(seen, 1000.0, 2)
    assert (seen.impossible == "") is is_possible
    watch = Attribution(NEG, False, "")
    watch.take(seen, CASE, True)
    assert (watch.refused is None) is is_possible
