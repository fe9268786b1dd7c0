"""Candidates are compiled while they wait, by real processes in the sandbox, for a GPU that is not here."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("triton")

from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.harness.machine import processes
from kgbench.harness.machine.settings import Deadlines, Job, RefereeSettings
from kgbench.harness.sandbox import linux, mounts
from kgbench.harness.session.ahead import AheadCompiler
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.session import Session, Settings
from kgbench.harness.wire.ahead import unpack, write
from kgbench.problem.registry import load_problem
from tests.harness.living import wait_until

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180), pytest.mark.xdist_group("ahead")]

H200: Final = {"name": "NVIDIA H200", "major": 9, "minor": 0, "total_memory": 150 << 30, "multi_processor_count": 132}
KERNEL: Final = """
import os

import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


def scale(x):
    _scale[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128)
    return x
"""
SOFTMAX: Final = f"{KERNEL}\n\ndef softmax(self, dim, dtype=None):\n    return scale(torch.empty_like(self))\n"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """As for a GPU: Triton compiles there, and is no interpreter."""
    with ForkServer(DeviceKind.CUDA) as started:
        if "mount" not in started.plan.namespaces:
            pytest.skip(f"needs mounts of a process's own: {started.plan.reasons}")
        yield started


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(Settings(device="cpu", jobs=1, timing=False)) as opened:
        yield opened


@pytest.fixture
def compiler(server: ForkServer) -> Iterator[AheadCompiler]:
    settings = RefereeSettings(DeviceKind.CUDA, "", "seed", Deadlines(), hidden=(str(problems_dir()),))
    made = AheadCompiler(server, "ahead", settings, 1, H200, 150.0)
    yield made
    made.close()


def job(text: str = SOFTMAX) -> Job:
    return Job(load_problem(problems_dir() / "aten/softmax.yaml"), "test", source=text)


def compiled(compiler: AheadCompiler, text: str, cache: Path) -> set[str]:
    """Names of the files that a worker would have in its cache, once all is compiled."""
    with compiler.compiling(job(text)) as judged, open(judged.compiled, "rb") as file:
        assert wait_until(lambda: not compiler.at_hand[0].goes_on, 60.0)
        unpack(file, cache)
    return {str(path.relative_to(cache)) for path in cache.glob("*/*")}


def test_a_kernel_is_compiled_for_the_gpu_of_the_session(compiler: AheadCompiler, tmp_path: Path) -> None:
    found = compiled(compiler, SOFTMAX, tmp_path)
    code = {name for name in found if name.endswith("_scale.cubin")}
    assert len(code) >= 6  # three types, sizes that 16 divides and others
    assert all(b".target sm_90" in path.read_bytes() for path in tmp_path.glob("*/_scale.ptx"))
    group = next(tmp_path.glob("*/__grp___scale.json")).read_text(encoding="utf-8")
    assert str(tmp_path) in group
    assert "{cache}" not in group


def test_triton_finds_it_there(compiler: AheadCompiler, tmp_path: Path) -> None:
    """The key of a kernel is the same in a process that has another folder, and passes a tensor of its own."""
    compiled(compiler, SOFTMAX, tmp_path / "cache")
    before = set((tmp_path / "cache").iterdir())
    (tmp_path / "kernel.py").write_text(SOFTMAX)
    looks = f"""
import sys, types
sys.path[:0] = [{str(tmp_path)!r}]
import torch, kernel
from kgbench.harness.candidate import ahead
with ahead.believe_in({H200!r}, lambda failed: None):
    kernel.softmax(torch.empty(64, 64, dtype=torch.float16, device="cuda"), -1)
    kernel.softmax(torch.empty(63, 1, dtype=torch.float32, device="cuda"), -1)
"""
    variables = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    variables.pop("TRITON_INTERPRET", None)
    subprocess.run([sys.executable, "-c", looks], env=variables, check=True, timeout=60)
    assert set((tmp_path / "cache").iterdir()) == before


def test_a_call_that_fails_costs_nothing_else(compiler: AheadCompiler, tmp_path: Path) -> None:
    text = SOFTMAX.replace("    return scale(", "    if self.dim() == 1:\n        raise ValueError\n    return scale(")
    assert any(name.endswith("_scale.cubin") for name in compiled(compiler, text, tmp_path))


@pytest.mark.parametrize("ending", ["raise ValueError", "os._exit(1)", "del softmax"])
def test_what_cannot_be_called_leaves_nothing(compiler: AheadCompiler, tmp_path: Path, ending: str) -> None:
    assert compiled(compiler, f"{SOFTMAX}\n{ending}\n", tmp_path) == set()


def test_what_does_not_end_is_ended_with_its_candidate(server: ForkServer, compiler: AheadCompiler) -> None:
    assert server.pid is not None
    before = set(processes.descendants(server.pid))
    with compiler.compiling(job(f"{SOFTMAX}\nimport time\ntime.sleep(600)\n")):
        assert wait_until(lambda: len(set(processes.descendants(server.pid or 0)) - before) >= 2, 30.0)
    assert wait_until(lambda: set(processes.descendants(server.pid or 0)) <= before, 30.0)
    assert compiler.at_hand == []


def test_one_begins_when_another_has_ended(compiler: AheadCompiler) -> None:
    def states() -> list[tuple[bool, bool]]:
        return [(each.begun, each.goes_on) for each in compiler.at_hand]

    waits = f"{SOFTMAX}\nimport time\ntime.sleep(600)\n"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as others:
        first.enter_context(compiler.compiling(job(waits)))
        others.enter_context(compiler.compiling(job(waits)))
        others.enter_context(compiler.compiling(job(waits)))
        assert states() == [(True, True), (False, False), (False, False)]
        first.close()
        assert states() == [(True, True), (False, False)]
    assert not any(Path(compiler._folder.name).iterdir())


def test_it_stands_back_in_the_sandbox_of_a_candidate(
    server: ForkServer, compiler: AheadCompiler, tmp_path: Path
) -> None:
    """What it tells of itself comes the way that kernels come."""
    told = f"""{SOFTMAX}
folder = os.path.join(os.environ["TRITON_CACHE_DIR"], "TOLD")
os.makedirs(folder)
said = [os.getpriority(os.PRIO_PROCESS, 0), len(os.sched_getaffinity(0))]
said += [os.path.exists("{problems_dir()}/aten/softmax.yaml"), os.getuid() == 0]
open(os.path.join(folder, "said"), "w").write(" ".join(map(str, said)))
"""
    assert "TOLD/said" in compiled(compiler, told, tmp_path)
    niceness, cores, sees_problems, is_root = (tmp_path / "TOLD/said").read_text().split()
    assert (niceness, sees_problems) == ("10", "False")
    assert int(cores) == -(-len(os.sched_getaffinity(0)) // 2)
    assert is_root == str(not server.plan.own_uid and os.getuid() == 0)


def test_gpus_are_shut(server: ForkServer, tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidiactl", "dri/card0", "null"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a device")
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            linux.libc_call("unshare", mounts.NEWNS)
            mounts._mount("none", "/", None, mounts._REC | mounts._PRIVATE)
            mounts.shut_gpus(str(tmp_path))
            left = [name for name in ("nvidia0", "nvidiactl", "dri/card0", "null") if (tmp_path / name).read_text()]
            os._exit(0 if left == ["null"] else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_nothing_is_compiled_ahead_for_a_cpu(session: Session) -> None:
    assert session.most == session.jobs


def test_a_worker_has_in_its_cache_what_was_compiled_when_it_is_called(session: Session, tmp_path: Path) -> None:
    """Not before: nothing of a candidate's is there while it is imported."""
    text = (
        "import glob, os\nprint('imported', glob.glob(os.environ['TRITON_CACHE_DIR'] + '/*/*'))\n\n"
        "def t(self):\n    print('called', len(glob.glob(os.environ['TRITON_CACHE_DIR'] + '/*/*')))\n"
        "    return self.t()\n"
    )
    with (tmp_path / "compiled").open("wb") as file:
        write(file, "KEY/a.cubin", b"code")
        write(file, "KEY/b.cubin", b"code")
    known = Job(load_problem(problems_dir() / "aten/t.yaml"), "test", source=text, compiled=str(tmp_path / "compiled"))
    result = session.evaluate(known)
    assert result.outcome is Outcome.PASSED, result.reason
    assert "called 2" in result.log_tail
    assert "called 0" not in result.log_tail
    gone = session.evaluate(replace(known, compiled=str(tmp_path / "gone")))
    assert gone.outcome is Outcome.PASSED, gone.reason
    assert "called 0" in gone.log_tail
    imported = session.evaluate(replace(known, source=text.replace("print('called'", "('called'")))
    assert "imported []" in imported.log_tail
