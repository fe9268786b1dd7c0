"""On a GPU: what is compiled ahead is what the worker needs, and no GPU can be reached where it is compiled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import answer_dirs, examples_dir, problems_dir  # noqa: E402
from kgbench.harness.session.cancellation import Cancellation  # noqa: E402
from kgbench.harness.session.session import Job, Session, Settings  # noqa: E402
from kgbench.harness.wire.ahead import unpack  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from tests.harness.living import wait_until  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

TELLS: Final = """
import ctypes, glob, json, os
import triton

def opens(path):
    try:
        number = os.fstat(os.open(path, os.O_RDWR)).st_rdev
        return number != os.stat("/dev/null").st_rdev
    except OSError:
        return False

folder = os.path.join(os.environ["TRITON_CACHE_DIR"], "TOLD")
os.makedirs(folder)
said = {
    "opened": [path for path in glob.glob("/dev/nvidia*") if opens(path)],
    "init": ctypes.CDLL("libcuda.so.1").cuInit(0),
}
open(os.path.join(folder, "said"), "w").write(json.dumps(said))
"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(Settings(device="cuda", seed="gpu tests", hidden=answer_dirs(), timing=False)) as opened:
        if opened._ahead is None:
            pytest.skip("the sandbox here has no mounts of a process's own")
        yield opened


def job(problem: str, before: str = "") -> Job:
    text = (examples_dir() / f"{problem}.py").read_text(encoding="utf-8")
    return Job(load_problem(problems_dir() / f"{problem}.yaml"), "tests", 0, f"{text}\n{before}")


def compiled(session: Session, asked: Job, cache: Path) -> None:
    ahead = session._ahead
    assert ahead is not None
    with ahead.compiling(asked) as judged, open(judged.compiled, "rb") as file:
        assert wait_until(lambda: not ahead.at_hand[0].goes_on, 120.0)
        unpack(file, cache)


def test_no_gpu_can_be_opened_where_it_is_compiled(session: Session, tmp_path: Path) -> None:
    compiled(session, job("vllm/moe_sum", TELLS), tmp_path)
    said = json.loads((tmp_path / "TOLD/said").read_text())
    assert said["opened"] == []
    assert said["init"] != 0


NEEDS: Final = """
import atexit, glob, os
from triton.compiler import compiler as _compiler
_made = _compiler.compile

def _told(*words, **named):
    before = len(glob.glob(os.environ["TRITON_CACHE_DIR"] + "/*/*.cubin"))
    kernel = _made(*words, **named)
    print("compiled" if len(glob.glob(os.environ["TRITON_CACHE_DIR"] + "/*/*.cubin")) > before else "found", flush=True)
    return kernel

import triton.compiler, triton.runtime.jit
for _each in (_compiler, triton.compiler, triton):
    _each.compile = _told
"""


@pytest.mark.parametrize("problem", ["vllm/moe_sum", "aten/softmax", "cublas/cublasSaxpy_v2"])
def test_a_worker_finds_what_was_compiled_ahead(session: Session, problem: str) -> None:
    """With all of it there before the first call, nothing is left to compile but what sizes of a secret seed need."""
    ahead = session._ahead
    assert ahead is not None
    asked = job(problem, NEEDS)
    with ahead.compiling(asked) as judged:
        assert wait_until(lambda: not ahead.at_hand[0].goes_on, 120.0)
        result = session._evaluate_until_sure(judged, lambda phase, detail: None, Cancellation())
    assert result.outcome is Outcome.PASSED, result.reason
    told = [line for line in result.log_tail.splitlines() if line in ("compiled", "found")]
    assert told.count("found") >= 5
    assert told.count("compiled") <= 0.2 * len(told), told
