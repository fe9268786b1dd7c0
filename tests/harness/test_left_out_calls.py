"""A kernel that leaves out one timed call in twenty is found by what its calls give, whatever the oracle costs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.details.values import Seed, SeedFault  # noqa: E402
from kgbench.core.kinds import Kind  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.core.types import Result  # noqa: E402
from kgbench.harness.clock.compared import ComparedCalls, compared_calls, differences  # noqa: E402
from kgbench.harness.clock.outputs import SecuredOutputs  # noqa: E402
from kgbench.harness.clock.window_inputs import WindowInputs, WindowLayout  # noqa: E402
from kgbench.harness.session.session import Job, Session  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.verdict.judges import judge_for  # noqa: E402
from kgbench.problem.cases import expand_cases  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from tests.harness.candidates import CANDIDATES  # noqa: E402
from tests.harness.living import PROBLEM  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]
HONEST = "import torch\n\ndef scale(self, factor):\n    return torch.mul(self, factor)\n"
CALLS = 20
"""Calls of a window that is made by hand."""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One timed case, of which one call in some hundred is judged by its oracle."""
    return write_problem(tmp_path_factory.mktemp("problems"), oracle_s=0.3)


def write_problem(folder: Path, oracle_s: float) -> Path:
    """A problem whose oracle sleeps for ``oracle_s`` seconds before each large call."""
    path = folder / "mine" / "scale.yaml"
    path.parent.mkdir()
    wait = f"import time\n      time.sleep({oracle_s} * (self.numel() > 9999))"
    reference = f"|\n  def reference(self, factor):\n      {wait}\n      return torch.mul(self, factor)\n"
    text = PROBLEM.replace('"torch.mul(self, factor)"', reference)
    path.write_text(text.replace("{m: 16, n: 256}", "{m: 512, n: 1024}"), encoding="utf-8")
    return path


def judged(session: Session, problem: Path, source: str) -> Result:
    return session.evaluate(Job(load_problem(problem), "test", source=source))


@pytest.mark.in_turn("kgbench/harness/clock/compared.py", "tests/candidates/timed/")
@pytest.mark.parametrize("beside_known_times", [False, True])
@pytest.mark.parametrize("name", sorted(path.stem for path in (CANDIDATES / "timed").glob("*.py")))
def test_a_call_that_is_left_out_is_judged(timed: Session, problem: Path, name: str, beside_known_times: bool) -> None:
    known = set()
    while beside_known_times and True not in known:
        timing = judged(timed, problem, HONEST).cases[-1].timing
        assert timing is not None
        known.add(timing.library_shared)
    result = judged(timed, problem, (CANDIDATES / "timed" / f"{name}.py").read_text())
    assert result.outcome is Outcome.WRONG_VALUE, result.reason
    assert "timed window" in result.reason


# --- by hand ---


@dataclass(frozen=True)
class MadeWindow:
    """A window of a problem's timed case, and what was secured of it."""

    judge: OverloadJudge
    layout: WindowLayout
    inputs: WindowInputs
    rows: torch.Tensor
    """uint8 (calls, stride): every call with a right answer in its place."""

    @classmethod
    def of(cls, path: Path) -> MadeWindow:
        overload = load_problem(path).overloads[0]
        judge = judge_for(overload, torch.device("cpu"), "")
        case = next(each for each in expand_cases(overload, "cpu", None, "") if each.phase == "bench")
        layout = WindowLayout.of(judge, case, torch.Generator().manual_seed(0))
        made = cls(judge, layout, inputs := layout.draw(CALLS, torch.Generator().manual_seed(1)), inputs.rows.clone())
        for i in range(CALLS):
            output = made.output(made.rows, i)
            if overload.kind == Kind.RANDOM:
                output.exponential_(generator=torch.Generator().manual_seed(i))
            else:
                output.copy_(judge.expected(inputs.call(i).inputs)["return"].value)
        return made

    def output(self, rows: torch.Tensor, i: int) -> torch.Tensor:
        """The output of a call, within the rows."""
        first = self.layout.first
        if not first.specs:
            chunk = first.inputs.chunks["self"]
            return chunk.view(rows[i, chunk.offset : chunk.offset + chunk.image.numel()])
        spec = first.specs[0]
        return rows[i, first.out_offset :][: spec.nbytes].view(getattr(torch, spec.dtype)).view(spec.shape)

    def compared(self, rows: torch.Tensor, order: tuple[str, str] = ("library", "candidate")) -> ComparedCalls:
        """The library's rows beside a candidate's."""
        found = compared_calls(self.layout, random.Random(2))
        outputs = {}
        for side in order:
            outputs[side] = SecuredOutputs(torch.device("cpu"), random.Random(3))
            outputs[side].order = random.Random(4).sample(range(CALLS), CALLS)
            outputs[side].stride = self.layout.stride
            outputs[side].memory = (self.rows if side == "library" else rows)[outputs[side].order].reshape(-1)
            found.note(side, self.inputs, outputs)
        return found


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> MadeWindow:
    return MadeWindow.of(write_problem(tmp_path_factory.mktemp("scaled"), oracle_s=0))


def rounded(made: MadeWindow) -> torch.Tensor:
    """What an honest kernel gives that rounds otherwise."""
    rows = made.rows.clone()
    for i in range(CALLS):
        output = made.output(rows, i)
        output.mul_(1 + 1e-7 * torch.randn(output.shape, generator=torch.Generator().manual_seed(i)))
    return rows


def test_rounding_makes_no_call_stand_out(scaled: MadeWindow) -> None:
    found = scaled.compared(rounded(scaled))
    assert found.compared == CALLS
    assert found.suspect() is None
    assert scaled.compared(scaled.rows).suspect() is None


@pytest.mark.parametrize("order", [("library", "candidate"), ("candidate", "library")])
@pytest.mark.parametrize("left_out", ["all", "a tenth", "a little off", "nan"])
def test_a_call_that_was_left_out_stands_out(scaled: MadeWindow, left_out: str, order: tuple[str, str]) -> None:
    rows = rounded(scaled)
    output, before = scaled.output(rows, 7), scaled.output(rows, 6)
    changes = {"all": before, "a tenth": output.clone(), "a little off": output * 1.0001, "nan": output.clone()}
    changes["a tenth"][:51] = before[:51]
    changes["nan"][:51] = torch.nan
    output.copy_(changes[left_out])
    suspect = scaled.compared(rows, order).suspect()
    assert suspect is not None
    assert suspect.call.inputs.start == 7 * scaled.layout.stride
    assert torch.equal(suspect.secured, rows[7])
    verdict = scaled.judge.judge_suspect(suspect.call, suspect.secured, suspect.sample.name, suspect.sample.logical)
    assert verdict.outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("left_out", ["repeated", "untouched"])
def test_a_random_call_that_was_left_out_gave_nothing_new(left_out: str) -> None:
    made = MadeWindow.of(problems_dir() / "aten/exponential_.yaml")
    assert made.compared(made.rows).suspect() is None
    rows = made.rows.clone()
    rows[7] = rows[3] if left_out == "repeated" else made.inputs.rows[7]
    suspect = made.compared(rows).suspect()
    assert suspect is not None
    verdict = made.judge.judge_suspect(suspect.call, suspect.secured, suspect.sample.name, suspect.sample.logical)
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert left_out == "untouched" or verdict.detail == Seed("self", SeedFault.SEEN_BEFORE)


def test_differences_know_infinities_and_cancelled_elements() -> None:
    inf, nan = torch.inf, torch.nan
    first = torch.tensor([[1.0, inf, nan, 0.0], [1.0, inf, 2.0, 1e38], [1.0, 2.0, 3.0, 1e-30]])
    second = torch.tensor([[1.0, inf, nan, 0.0], [1.0, -inf, nan, 1e38], [1.0, 2.0, 3.0, -1e-30]])
    assert differences([first], [second])[0] == pytest.approx([0.0, 0.5, 0.0], abs=1e-20)


def test_differences_of_finite_elements_are_those_of_the_general_form() -> None:
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(5, 64, generator=generator, dtype=torch.complex64) for _ in range(2))
    second[0], first[1], second[1] = first[0], 0.0, 0.0
    (found,) = differences([first], [second])
    general = first.clone(), second.clone()
    for each in general:
        each[4, 0] = torch.inf  # which takes the other way, for all calls
    assert found[:2] == [0.0, 0.0]
    assert found[:4] == pytest.approx(differences([general[0]], [general[1]])[0][:4], rel=1e-12)
