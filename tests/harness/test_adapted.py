"""Kernels of installed packages: what is not offered, what is wrong all the same, and the short file that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.core.details.failures import Raised
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import answer_dirs
from kgbench.core.types import Result
from kgbench.core.verdicts import Verdict
from kgbench.harness.referee.checking import may_be_device_fault
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.models import adapted
from kgbench.problem.registry import Registry
from kgbench.reports.package_calls import package_calls, package_lines
from kgbench.store.reader import read_run
from tests.harness.sessions import kgbench

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]

SILU = Registry().find("aten/silu")
RIGHT = "torch.nn.functional.silu(self)"
WRONG_ABOVE_1 = f"torch.where(self > 1, self, {RIGHT})"
FILE = """
package = "torch"
install = "torch"
issue_first = "import torch"
first = "import torch"

[calls."aten/silu"]
where = "self.dtype != torch.bfloat16"
call = "{call}"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of adapters, in which a test writes its own ``liger.toml``."""
    monkeypatch.setattr(adapted, "FOLDER", tmp_path)
    return tmp_path


def text(folder: Path, call: str) -> str:
    (folder / "liger.toml").write_text(FILE.format(call=call))
    found = adapted.adapter("liger").source(SILU)
    assert found is not None
    return found


def judged(session: Session, source: str, package: str = "torch 2") -> Result:
    return session.evaluate(Job(SILU, "liger:2", source=source, adapted=package))


def outcomes(result: Result) -> set[tuple[bool, str]]:
    return {(case.dtype == "bfloat16", str(case.outcome)) for case in result.cases}


def test_calls_that_are_not_offered_are_told_apart_and_the_others_judged(session: Session, package: Path) -> None:
    found = judged(session, text(package, RIGHT))
    assert found.outcome is Outcome.NOT_OFFERED
    assert found.reason.startswith("case ")
    assert "torch 2 does not offer it: only calls with self.dtype != torch.bfloat16" in found.reason
    assert outcomes(found) == {(False, "passed"), (True, "not offered")}
    assert found.adapted == "torch 2"


def test_what_is_wrong_is_wrong_although_other_calls_are_not_offered(session: Session, package: Path) -> None:
    found = judged(session, text(package, WRONG_ABOVE_1))
    assert found.outcome is Outcome.WRONG_VALUE


def test_calls_after_one_that_fails_are_judged_and_counted(session: Session, package: Path) -> None:
    found = judged(session, text(package, "torch.nn.functional.silu(self) if self.dim() else int('x')"))
    assert found.outcome is Outcome.RUNTIME_ERROR
    states = [case.outcome for case in found.cases]
    first = next(number for number, state in enumerate(states) if state not in (Outcome.PASSED, Outcome.NOT_OFFERED))
    assert Outcome.PASSED in states[first + 1 :], (found.reason, states)
    (row,) = package_calls([found])
    assert (row.correct, row.not_offered) == (states.count(Outcome.PASSED), states.count(Outcome.NOT_OFFERED))
    assert row.failed == len(states) - row.correct - row.not_offered > 0
    assert list(package_lines([row])) == [
        f"calls of installed packages: {row.correct} of {row.correct + row.failed} correct, "
        f"{row.not_offered} not offered; no call fails of 0 of 1 operator"
    ]


@pytest.mark.parametrize(
    ("name", "message", "told"),
    [
        ("AcceleratorError", "CUDA error: an illegal memory access was encountered", True),
        ("RuntimeError", "Triton Error [CUDA]: misaligned address", True),
        ("CUDARuntimeError", "unspecified launch failure", True),
        ("AssertionError", "Invalid dim", False),
    ],
)
def test_only_a_device_fault_ends_the_worker(name: str, message: str, told: bool) -> None:
    assert may_be_device_fault(Verdict(Outcome.RUNTIME_ERROR, Raised(name, message))) is told


def test_a_candidate_of_a_model_cannot_choose_its_calls(session: Session, package: Path) -> None:
    found = judged(session, text(package, RIGHT), package="")
    assert found.outcome is Outcome.RUNTIME_ERROR
    assert "NotImplementedError" in found.reason


def test_a_package_that_does_nothing_on_this_machine_is_not_offered(session: Session) -> None:
    found = judged(session, 'raise NotImplementedError("its kernels run on a GPU alone")')
    assert found.outcome is Outcome.NOT_OFFERED
    assert "its kernels run on a GPU alone" in found.reason
    assert not found.cases


@pytest.mark.in_turn("kgbench/models/")
@pytest.mark.usefixtures("commands_share_it")
def test_a_run_names_the_version_and_a_short_file_shows_the_first_wrong_element(package: Path, tmp_path: Path) -> None:
    text(package, WRONG_ABOVE_1)
    done = kgbench(tmp_path, "run", "--model", "liger", "--problems", "aten/silu,aten/t", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    stored = read_run(run)
    results = {each.problem: each for each in stored.results}
    assert stored.info["asked"]["policy"] == "report"
    silu, t = results["aten/silu"], results["aten/t"]
    assert silu.model.startswith("liger:2")
    assert (silu.outcome, silu.policy, silu.adapted.split()[0]) == (Outcome.WRONG_VALUE, "report", "torch")
    assert (t.outcome, t.reason.partition(" offer")[2]) == (Outcome.NOT_OFFERED, " it: it has no such operator")
    assert "in no denominator: 1 not offered" in done.stdout

    file = tmp_path / "repro.py"
    shown = kgbench(tmp_path, "show", "last/aten/silu", "--repro", str(file))
    assert shown.returncode == 0, shown.stderr
    lines = file.read_text().splitlines()
    assert len(lines) <= 12
    assert "kgbench" not in file.read_text()
    assert "run by itself it ends with" in shown.stderr
    assert "AssertionError: Tensor-likes are not close" in shown.stderr
    import torch

    stored_text = (run / "results.jsonl").read_text(encoding="utf-8")
    (run / "results.jsonl").write_text(stored_text.replace('"device": "cpu"', '"device": "cuda"'), encoding="utf-8")
    if not torch.cuda.is_available():
        elsewhere = kgbench(tmp_path, "show", "last/aten/silu", "--repro", str(tmp_path / "none.py"))
        assert elsewhere.returncode == 3
        assert "the run was made on a GPU, and none is visible here" in elsewhere.stderr
    repaired = file.read_text().replace("self > 1, self,", "self > 1, torch.nn.functional.silu(self),")
    exec(compile(repaired, "repaired.py", "exec"), {})  # ends without an error


def test_a_package_beside_which_kernels_are_timed_is_seen_by_its_own_kernels_only(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM's folder is hidden from candidates; ``--model vllm`` has to import it."""
    (tmp_path / "site/vllm").mkdir(parents=True)
    (tmp_path / "site/vllm/__init__.py").write_text("")
    (tmp_path / "site/vllm/kernels.py").write_text("import torch\nsilu = torch.nn.functional.silu\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    source = text(package, "kernels.silu(self)").replace(
        "import torch\n", "import torch\nfrom vllm import kernels\n", 1
    )
    with Session(Settings(device="cpu", seed="tests", timing=False, hidden=answer_dirs())) as session:
        seen, unseen = judged(session, source, "vllm 0"), judged(session, source)
        hidden = "files" not in session.facts["sandbox_open"]
    assert seen.outcome is Outcome.NOT_OFFERED, seen.reason
    if not hidden:
        pytest.skip("the sandbox here hides no folders")
    assert unseen.outcome is Outcome.RUNTIME_ERROR
    assert "vllm" in unseen.reason


def test_a_worker_compiles_in_itself(session: Session, package: Path) -> None:
    """Inductor's processes find no GPU in a sandbox."""
    found = judged(session, text(package, "int(f'threads {torch._inductor.config.compile_threads}')").replace(
        "import torch\n", "import torch, torch._inductor.config\n", 1))  # fmt: skip
    assert "threads 1" in found.reason
