"""The same promises on a real GPU: examples pass beside the real libraries, misbehaviour ends as an outcome."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import answer_dirs, examples_dir, problems_dir
from kgbench.harness.machine.languages import lacking, machine_of
from kgbench.harness.session.session import Deadlines, Job, Session, Settings
from kgbench.problem.registry import Registry, load_problem
from tests.harness.candidates import KnownCandidate, adversaries, honest, mutants
from tests.sampling import sampled_examples

pytestmark = pytest.mark.timeout(300)

PROBLEMS = sorted(Registry().ids())
EXAMPLES = [f"{path.parent.name}/{path.stem}" for path in sampled_examples()]
SHORT = Deadlines(import_s=10.0, compile_s=5.0, case_s=3.0, window_s=5.0, whole_s=60.0)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(Settings(device="cuda", seed="gpu tests", hidden=answer_dirs())) as opened:
        yield opened


@pytest.fixture(scope="module")
def impatient() -> Iterator[Session]:
    limits = {"memory_bytes": 8 << 30, "output_bytes": 16 << 20, "processes": 64}
    # Timed, too: a stream that is not joined shows in windows only, where nothing waits for the whole device.
    settings = Settings(device="cuda", seed="gpu tests", hidden=answer_dirs(), deadlines=SHORT, limits=limits)
    with Session(settings) as opened:
        yield opened


@pytest.mark.parametrize("problem_id", EXAMPLES)
def test_the_example_passes_and_is_timed(session: Session, problem_id: str) -> None:
    path = problems_dir() / f"{problem_id}.yaml"
    source = (examples_dir() / f"{problem_id}.py").read_text()
    result = session.evaluate(Job(load_problem(path), "examples", source=source))
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"
    assert result.library is not None
    if result.kind == "compute" and result.library.name:
        timings = [case.timing for case in result.cases if case.phase == "bench"]
        assert timings
        assert all(timing is not None and timing.queued for timing in timings)


@pytest.mark.parametrize("language", ["cupy", "load_inline"])
@pytest.mark.parametrize("problem_id", ["aten/softmax", "vllm/rms_norm", "cublas/cublasSdot_v2"])
def test_the_example_in_another_language_passes(session: Session, problem_id: str, language: str) -> None:
    source = (examples_dir(language) / f"{problem_id}.py").read_text()
    if missing := lacking(source, machine_of("cuda", str(session.facts["versions"]["cuda"]))):
        pytest.skip(missing)
    path = problems_dir() / f"{problem_id}.yaml"
    result = session.evaluate(Job(load_problem(path), "examples", source=source))
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"
    timings = [case.timing for case in result.cases if case.phase == "bench"]
    assert timings
    assert all(timing is not None and timing.queued for timing in timings)


@pytest.mark.parametrize("known", [k for k in adversaries() if k.device != "cpu"], ids=lambda known: known.id)
def test_adversary_gets_its_outcome(impatient: Session, known: KnownCandidate) -> None:
    judge(impatient, known)


@pytest.mark.parametrize("known", [k for k in mutants() if k.device != "cpu"], ids=lambda known: known.id)
def test_mutant_is_caught(impatient: Session, known: KnownCandidate) -> None:
    judge(impatient, known)


def judge(session: Session, known: KnownCandidate) -> None:
    path = problems_dir() / f"{known.problem_id}.yaml"
    result = session.evaluate(Job(load_problem(path), "test", source=known.text))
    assert result.outcome in known.outcomes, f"{result.outcome}: {result.reason}\n{result.log_tail}"


@pytest.fixture(scope="module")
def strict() -> Iterator[Session]:
    with Session(Settings(device="cuda", seed="honest", hidden=answer_dirs(), policy="strict")) as opened:
        yield opened


@pytest.mark.parametrize("known", [k for k in honest() if k.device != "cpu"], ids=lambda known: known.id)
def test_no_honest_kernel_is_told_that_others_do_its_work(strict: Session, known: KnownCandidate) -> None:
    source = known.text
    if missing := lacking(source, machine_of("cuda", str(strict.facts["versions"]["cuda"]))):
        pytest.skip(missing)
    path = problems_dir() / f"{known.problem_id}.yaml"
    result = strict.evaluate(Job(load_problem(path), "test", source=source))
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"
    assert [each for each in result.evidence if not each.allowed] == []
    assert result.kind == "view" or any(case.timing is not None for case in result.cases)


HONEST = """
import torch

calls = 0

def add_Tensor(self, other, *, alpha=1):
    return work(self, other, alpha)

def add_Scalar(self, other, alpha=1):
    return work(self, other, alpha)

def work(self, other, alpha):
    return torch.add(self, other, alpha=alpha).contiguous()
"""
SYNCHRONISES = HONEST.replace("    return torch.add", "    torch.cuda.synchronize()\n    return torch.add")
FORGETFUL = HONEST.replace(
    "    return torch.add",
    "    global calls\n    calls += 1\n    if calls > 200 and self.numel() > 1 << 22:\n"
    "        return torch.zeros_like(self)\n    return torch.add",
)


@pytest.mark.parametrize(
    ("source", "outcome", "queued"),
    [(HONEST, Outcome.PASSED, True), (SYNCHRONISES, Outcome.PASSED, False), (FORGETFUL, Outcome.WRONG_VALUE, True)],
    ids=["honest", "synchronises", "forgetful"],
)
def test_windows_fit_what_the_candidate_does(session: Session, source: str, outcome: Outcome, queued: bool) -> None:
    """One that waits for the device cannot be queued and is timed with its launches, like the library beside it."""
    path = problems_dir() / "aten/add.yaml"
    result = session.evaluate(Job(load_problem(path), "test", source=source))
    assert result.outcome is outcome, result.reason
    timings = [case.timing for case in result.cases if case.timing is not None]
    assert all(timing.queued is queued for timing in timings)
    assert outcome is not Outcome.PASSED or len(timings) == 3
