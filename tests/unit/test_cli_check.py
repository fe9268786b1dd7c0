"""``kgbench check`` from a file to a screen, with a session that needs no torch. The real one is tests/harness's."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from kgbench.cli import check as module
from kgbench.cli.check import defined_names, problem_of
from kgbench.cli.main import main
from kgbench.core.details.failures import Evidence
from kgbench.core.details.values import Mismatch
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import CaseResult, Result
from kgbench.harness.machine.settings import Deadlines, Job
from kgbench.harness.session import session as session_module
from kgbench.problem.expressions import Expr
from kgbench.problem.model import Cost
from kgbench.problem.registry import Registry, load_problem
from kgbench.scores.roofline import achieved, roofline_share
from tests.sampling import sampled_examples
from tests.unit.made_results import bench, result, timing
from tests.unit.test_loader import GOOD

FACTS = {"name": "CPU", "kind": "cpu", "memory_gb": 8.0}
SOFTMAX = "def softmax_int(self, dim, dtype=None): ...\n"
WRONG = CaseResult(
    "check-5-float32", "", "check", "float32", {"a": 5, "b": 130}, Outcome.WRONG_VALUE, "wrong",
    Mismatch("return", (4, 0), "3", "-7", "1e-06", 0.2, (5, 130), "float32"),
)  # fmt: skip


class FakeSession:
    """Answers with ``answer``; keeps what it was asked."""

    answer: Callable[[Job], Result] = staticmethod(lambda job: right(job.problem_id))
    jobs: list[Job]
    settings: Any

    def __init__(self, settings: Any) -> None:
        type(self).settings = settings
        type(self).jobs = []
        self.facts = FACTS

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result:
        self.jobs.append(job)
        on_event("check", "1 of 3")
        return self.answer(job)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> type[FakeSession]:
    fake = type("Fake", (FakeSession,), {})
    monkeypatch.setattr(session_module, "Session", fake)
    monkeypatch.setattr(module, "check_machine", lambda: None)
    return fake


def right(problem: str) -> Result:
    size = {"self_shape": [1000, 1000], "self_dtype": "float32", "itemsize": 4}
    case = dataclasses.replace(bench(timing(0.83)), id="bench-cpu-1-float32", variables=size)
    return result(problem, cases=(case,), seconds={"total": 1.25})


def wrong(problem: str) -> Result:
    return result(problem, outcome=Outcome.WRONG_VALUE, cases=(*right(problem).cases, WRONG), reason="wrong")


def kernel(folder: Path, text: str = SOFTMAX, name: str = "mine.py") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def check(*arguments: str) -> CliResult:
    return CliRunner().invoke(main, ["check", *arguments, "--device", "cpu"])


def test_right_kernel_ends_with_0_and_its_speed(tmp_path: Path, session: type[FakeSession]) -> None:
    done = check(kernel(tmp_path))
    assert done.exit_code == 0, done.output
    assert "mine.py as aten/softmax: passed\n" in done.stdout
    # 8 MB and 5 M operations in 100 µs
    assert "cpu-1-float32 100 100 0.83x [0.81, 0.85] 80 50 " in " ".join(done.stdout.split())
    assert "speedup against the library: 0.83x [0.81, 0.85]" in done.stdout
    assert "roofline" not in done.stdout
    assert done.stderr.startswith("judging ")


def test_roofline_share_is_of_the_nearer_roof(tmp_path: Path, session: type[FakeSession]) -> None:
    peaks = {"gb_per_s": 100, "gflop_per_s": {"float32": 1000, "float16": 10_000}}
    case = session.answer(Job(load_problem(problems_dir() / "aten/softmax.yaml"), "m")).cases[0]

    def share(moved: int, flops: int, case: CaseResult = case, peaks: Any = peaks, **more: str) -> float | None:
        """Of bytes and operations of a call that takes 100 µs."""
        return roofline_share(case, Cost(Expr.parse(str(flops)), Expr.parse(str(moved)), **more), peaks)

    assert share(8_000_000, 5_000_000) == pytest.approx(0.8)
    assert share(100_000, 50_000_000) == pytest.approx(0.5)
    mixed = dataclasses.replace(case, variables={**case.variables, "inputs": "float16"})
    assert share(100_000, 50_000_000, mixed) == pytest.approx(0.05)
    assert share(100_000, 50_000_000, arithmetic="int8") == pytest.approx(0.025), "twice the rate of 16 bits"
    assert share(8_000_000, 5_000_000, peaks={**peaks, "write_gb_per_s": 160}) == pytest.approx(0.5)
    assert share(8_000_000, 5_000_000, peaks=None) is None


def test_wrong_kernel_ends_with_1_the_first_mismatch_and_a_guess(tmp_path: Path, session: type[FakeSession]) -> None:
    session.answer = staticmethod(lambda job: wrong(job.problem_id))
    done = check(kernel(tmp_path))
    assert done.exit_code == 1
    for words in (
        "mine.py as aten/softmax: wrong value",
        "case check-5-float32 (check, float32): a=5, b=130",
        "return, shape [5, 130], float32, at [4, 0]:",
        "got 3, wanted -7, limit 1e-06; 20 % of the elements are wrong",
        "guess: perhaps the last row is left out",
        "cases judged: 2, 1 of them correct",
    ):
        assert words in done.stdout


def test_json_is_all_that_stdout_carries(tmp_path: Path, session: type[FakeSession]) -> None:
    session.answer = staticmethod(lambda job: wrong(job.problem_id))
    data = json.loads(check(kernel(tmp_path), "--json").stdout)
    assert (data["correct"], data["outcome"], data["device"]) == (False, "wrong value", FACTS)
    assert data["guess"] == "perhaps the last row is left out"
    assert data["first_failure"]["detail"]["index"] == [4, 0]
    seen = (Evidence("operator", "aten::mm", allowed=False), Evidence("operator", "aten::view"))
    session.answer = staticmethod(
        lambda job: dataclasses.replace(right(job.problem_id), policy="report", evidence=seen)
    )
    data = json.loads(check(kernel(tmp_path), "--json").stdout)
    assert data["correct"] is True
    assert (data["policy"], [each["name"] for each in data["not_allowed"]]) == ("report", ["aten::mm"])
    assert data["speedup"]["point"] == pytest.approx(0.83)
    assert data["bench"][0]["achieved"] == {"gb_per_s": pytest.approx(80.0), "gflop_per_s": pytest.approx(50.0)}


def test_hints_are_said_and_decide_nothing(tmp_path: Path, session: type[FakeSession]) -> None:
    calls = "".join(f"    torch.{name}(self)\n" for name in ("exp", "sum", "amax", "div", "log", "sin", "cos"))
    path = kernel(tmp_path, f"import torch\n\n\ndef softmax_int(self, dim, dtype=None):\n{calls}")
    done = check(path)
    assert done.exit_code == 0
    hinted = [line for line in done.stdout.splitlines() if line.startswith("hint: ")]
    assert hinted[0].startswith("hint: line 5 calls torch.exp, which compute candidates may not use (policy: ")
    assert hinted[5:] == ["hint: 2 more such lines; see docs/policy.md"]
    data = json.loads(check(path, "--json").stdout)
    assert [(hint["line"], hint["what"]) for hint in data["hints"]][-1] == (11, "calls torch.cos")


def test_interpreted_kernel_has_no_speed(tmp_path: Path, session: type[FakeSession]) -> None:
    session.answer = staticmethod(lambda job: dataclasses.replace(right(job.problem_id), interpreted=True))
    done = check(kernel(tmp_path))
    assert done.exit_code == 0
    assert "0.83" not in done.stdout
    assert "Triton's interpreter" in done.stdout


def test_control_characters_of_a_candidate_are_not_printed(tmp_path: Path, session: type[FakeSession]) -> None:
    session.answer = staticmethod(
        lambda job: result(job.problem_id, outcome=Outcome.RUNTIME_ERROR, reason="\x1b[2Jgone", log_tail="\x1b[1mbold")
    )
    done = check(kernel(tmp_path))
    assert done.exit_code == 1
    assert "�[2Jgone" in done.stdout
    assert "\x1b" not in done.stdout


def test_text_and_deadlines_reach_the_session(tmp_path: Path, session: type[FakeSession]) -> None:
    check(kernel(tmp_path), "--timeout", "50", "--deadline", "compile=7")
    assert session.settings.deadlines == Deadlines(180, 7, 900, 30, 90, 50)
    assert problems_dir() in session.settings.hidden
    assert session.settings.seed
    assert (session.jobs[0].source, session.jobs[0].problem_id) == (SOFTMAX, "aten/softmax")


def test_named_problem_is_taken_whatever_the_file_defines(tmp_path: Path, session: type[FakeSession]) -> None:
    assert check(kernel(tmp_path, "def other(): ...\n"), "add.Tensor").exit_code == 0
    assert session.jobs[0].problem_id == "aten/add"


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("def soft_max(x): ...\n", (), "mine.py defines soft_max, and none is the entry of a problem; name"),
        ("", (), "the file is empty"),
        ("x: int\n", (), "defines no function at its top level"),
        ("def mm(): ...\ndef t(): ...\n", (), "defines entries of 2 problems:\n  aten/mm: mm\n  aten/t: t\nSay"),
        (SOFTMAX, ("softmaxx",), "there is no problem 'softmaxx'; closest: aten/softmax"),
        (SOFTMAX, ("--deadline", "lunch=3"), "PHASE=SECONDS"),
    ],
)
def test_what_cannot_be_checked_ends_with_2(
    tmp_path: Path, session: type[FakeSession], text: str, arguments: tuple[str, ...], words: str
) -> None:
    done = check(kernel(tmp_path, text), *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_missing_file_ends_with_2(tmp_path: Path) -> None:
    done = check(str(tmp_path / "none.py"))
    assert done.exit_code == 2
    assert "there is no file none.py" in done.stderr


@pytest.mark.parametrize("path", sampled_examples(), ids=lambda path: path.stem)
def test_every_example_names_its_problem_by_its_entry(tmp_path: Path, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert problem_of(tmp_path / "any.py", text, Registry()) == f"{path.parent.name}/{path.stem}"


def test_path_decides_between_problems_with_one_entry(tmp_path: Path) -> None:
    for source in ("aten", "vllm"):
        kernel(tmp_path, GOOD.replace('"scale(', '"same('), f"problems/{source}/same.yaml")
    registry = Registry((tmp_path / "problems",))
    assert problem_of(tmp_path / "vllm" / "same.py", "def same(): ...", registry) == "vllm/same"
    with pytest.raises(UsageError, match="entries of 2 problems"):
        problem_of(tmp_path / "same.py", "def same(): ...", registry)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import torch\ndef mm(a, b):\n    def t(): ...\n", ["mm"]),
        ("@triton.jit\ndef kernel(): ...\nmm = build()\n", ["kernel", "mm"]),
        ("class C:\n    def mm(self): ...\n", []),
        ("def mm(a, b)\n    return a\n", ["mm"]),
        ("if True:\n    def mm(): ...\n", []),
        ("mm == 3\ndef t(:\n", ["t"]),
    ],
)
def test_names_of_the_top_level(text: str, names: list[str]) -> None:
    assert defined_names(text) == names


def test_rates_need_a_cost_and_values_for_its_variables() -> None:
    cost = load_problem(problems_dir() / "aten" / "softmax.yaml").overloads[0].cost
    case = right("aten/softmax").cases[0]
    assert achieved(case, None) is None
    assert achieved(dataclasses.replace(case, variables={}), cost) is None
    assert achieved(dataclasses.replace(case, timing=None), cost) is None
