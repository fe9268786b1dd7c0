"""On a GPU: examples are not named, and hidden libraries are found by their kernels and times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import answer_dirs, examples_dir, exploits_dir, problems_dir  # noqa: E402
from kgbench.harness.session.session import Job, Session, Settings  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]
EXAMPLES: Final = sorted(
    examples_dir().parent / language / f"{problem}.py"
    for language in ("triton", "cupy")
    for problem in ("aten/softmax", "cublas/cublasSdot_v2", "vllm/rms_norm")
)
CHEATS: Final = {
    "calls_the_library_by_ctypes": "cuBLAS's",
    "hides_the_library_in_a_graph": "cuBLAS's",
    "computes_on_the_host": "aten::mm",
    "works_only_when_watched": "when timed",
    "lies_about_itself": "was seen",
}


@pytest.fixture(scope="module")
def strict() -> Iterator[Session]:
    with Session(Settings(device="cuda", seed="gpu tests", hidden=answer_dirs(), policy="strict")) as opened:
        yield opened


def job(path: Path, problem: str) -> Job:
    return Job(load_problem(problems_dir() / f"{problem}.yaml"), "tests", 0, path.read_text(encoding="utf-8"))


def problem_of(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("# problem: ")[2].partition("\n")[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: "/".join(path.parts[-3:]))
def test_honest_kernels_are_not_named(strict: Session, path: Path) -> None:
    result = strict.evaluate(job(path, "/".join(path.with_suffix("").parts[-2:])))
    assert result.outcome is Outcome.PASSED, result.reason
    assert [each for each in result.evidence if not each.allowed] == []


@pytest.mark.parametrize("name", CHEATS)
def test_what_is_hidden_is_found(strict: Session, name: str) -> None:
    path = exploits_dir() / f"{name}.py"
    result = strict.evaluate(job(path, problem_of(path)))
    assert result.outcome is Outcome.REJECTED
    assert CHEATS[name] in result.reason
