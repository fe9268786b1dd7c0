"""Candidates in languages beside Triton, with real processes on the CPU; the GPU's are in tests/gpu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgbench.core.details.sentences import words_of
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.core.types import Result
from kgbench.harness.machine.languages import lacking, machine_of
from kgbench.harness.session.session import Job, Session
from kgbench.problem.registry import load_problem

pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[2] / "docs" / "languages.md"
README = PAGE.parents[1] / "README.md"
ON_THE_PAGE = "docs/languages.md"
LANGUAGES = ("triton", "cupy", pytest.param("load_inline", marks=pytest.mark.in_turn(ON_THE_PAGE)))
EXAMPLES = "kgbench/examples/load_inline"
BUILT = ("aten/softmax", "vllm/rms_norm", "cublas/cublasSdot_v2")
"""Examples in C++: each takes a compiler over ten seconds."""
HONEST = "import torch\n\ndef t(self):\n    return self.t() if self.ndim > 1 else self.view(self.shape)\n"


def page_examples() -> dict[str, str]:
    """The complete files of docs/languages.md by what they use."""
    texts = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names = ("triton", "cupy", "load_inline")
    return {next(name for name in names if f"import {name}" in text): text for text in texts}


def judge(session: Session, problems: Path, problem_id: str, source: str) -> Result:
    return session.evaluate(Job(load_problem(problems / f"{problem_id}.yaml"), "test", source=source))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "problem_id",
    [pytest.param(each, marks=pytest.mark.in_turn(f"{EXAMPLES}/{each}.py", f"problems/{each}.yaml")) for each in BUILT],
)
def test_load_inline_compiles_in_the_sandbox(impatient: Session, problem_path: Path, problem_id: str) -> None:
    """Longer than this session gives an import: building has a deadline of its own."""
    source = (examples_dir("load_inline") / f"{problem_id}.py").read_text()
    if missing := lacking(source, machine_of("cpu", None)):
        pytest.skip(words_of(missing))
    result = judge(impatient, problem_path, problem_id, source)
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_files_of_the_page_are_right(session: Session, problem_path: Path, language: str) -> None:
    source = page_examples()[language]
    if missing := lacking(source, machine_of("cpu", None)):
        pytest.skip(words_of(missing))
    result = judge(session, problem_path, "cublas/cublasSdot_v2", source)
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"


@pytest.mark.parametrize(("wrong", "outcome"), [("", Outcome.PASSED), (" * incx", Outcome.WRONG_VALUE)])
def test_the_readmes_kernel_is_right_until_it_is_broken(
    session: Session, problem_path: Path, wrong: str, outcome: Outcome
) -> None:
    (source,) = re.findall(r"<<'END'\n(import triton\n.*?)^END", README.read_text(), re.MULTILINE | re.DOTALL)
    result = judge(session, problem_path, "cublas/cublasSscal_v2", source.replace(wrong, "", 1))
    assert result.outcome is outcome, result.reason


def test_what_cannot_run_here_is_skipped_with_what_it_needs(session: Session, problem_path: Path) -> None:
    source = (examples_dir("cupy") / "aten/softmax.py").read_text()
    result = judge(session, problem_path, "aten/softmax", source)
    assert result.outcome is Outcome.SKIPPED
    assert result.reason.startswith("needs a GPU")


@pytest.mark.parametrize(
    "failing",
    [
        "import torch\nraise ModuleNotFoundError('No module named cupy', name='cupy')\n",
        "import kgbench_no_such_module\n",
        "class cupy(ImportError): pass\nraise cupy('needs cupy: pip install cupy')\n",
    ],
)
def test_raising_an_import_error_does_not_skip(session: Session, problem_path: Path, failing: str) -> None:
    result = judge(session, problem_path, "aten/t", failing + HONEST)
    assert result.outcome is Outcome.RUNTIME_ERROR, result.reason


def test_an_import_that_may_fail_is_judged(session: Session, problem_path: Path) -> None:
    result = judge(session, problem_path, "aten/t", f"try:\n    import cupy\nexcept ImportError:\n    pass\n{HONEST}")
    assert result.outcome is Outcome.PASSED, result.reason
