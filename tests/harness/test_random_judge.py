"""Random operators through real processes: honest kernels pass, and each dishonest one is told what it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines.references import random as laws  # noqa: E402
from kgbench.core.details.values import Seed, SeedFault  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.types import Result  # noqa: E402
from kgbench.core.verdicts import PASSED  # noqa: E402
from kgbench.harness.session.session import Job, Session  # noqa: E402
from kgbench.harness.verdict.random.judge import LOW_BITS, RandomJudge, _seedings  # noqa: E402
from kgbench.problem.cases import expand_cases  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

pytestmark = pytest.mark.torch

EXPONENTIAL = """\
summary: exponentially distributed numbers
kind: random
category: test
entry: "exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor"
returns: self
dtypes: {required: [float32]}
defaults: {n: 1, seed: null}
arguments:
  self: {access: readwrite, shape: "(n,)", draw: "normal()"}
  lambd: {value: "2.5"}
  generator: {value: "seed"}
cases:
  check: [{n: 0}, {n: 3}, {n: 20000}, {n: 500, seed: 5}]
  bench: {cpu: [{n: 4096}], gpu24: [{n: 67108864}]}
baseline: {cuda: "aten:exponential_", cpu: "aten:exponential_"}
reference: "kgbench.baselines.references.random:exponential"
tolerance: {rule: exact}
cost: {flops: "n", bytes: "4 * n"}
doc: Exponentially distributed numbers.
"""
SLOPES = """\
summary: randomised leaky ReLU
kind: random
category: test
entry: "rrelu_with_noise(self: Tensor, noise: Tensor, lower: Scalar, upper: Scalar, training: bool,
  generator: Generator | None = None) -> Tensor"
dtypes: {required: [float32, bfloat16]}
defaults: {n: 1, training: true, seed: null}
arguments:
  self: {access: read, shape: "(n,)", draw: "normal()"}
  noise: {access: readwrite, shape: "(n,)", draw: "normal()"}
  lower: {value: "0.125"}
  upper: {value: "1 / 3"}
  training: {value: "training"}
  generator: {value: "seed"}
cases:
  check: [{n: 700, training: false}, {n: 20000}, {n: 500, seed: 5}]
  bench: {cpu: [{n: 4096, dtype: float32}], gpu24: [{n: 67108864}]}
baseline: {cuda: "aten:rrelu_with_noise", cpu: "aten:rrelu_with_noise"}
reference: "kgbench.baselines.references.random:rrelu_with_noise"
tolerance: {rule: rounding, ulps: 2}
cost: {flops: "n", bytes: "4 * n"}
doc: A randomised leaky ReLU.
"""


def problem_file(folder: Path, text: str) -> Path:
    name = text.split('entry: "')[1].partition("(")[0]
    path = folder / "aten" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def judged(session: Session, path: Path, **job: Any) -> Result:
    return session.evaluate(Job(load_problem(path), "test", **job))


def kernel(body: str, before: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    head = "def exponential_(self, lambd=1.0, *, generator=None):"
    return f"import torch\n{before}\n{head}\n{lines}\n    self.copy_(-torch.log1p(-u) / lambd)\n    return self\n"


DRAWN = "u = torch.rand(self.shape, generator=generator).clamp_min(1e-7)"
"""Uniform numbers, honestly."""

# --- honest ---


@pytest.mark.parametrize("text", [EXPONENTIAL, SLOPES])
@pytest.mark.parametrize("trusted", ["baseline", "reference"])
def test_library_and_reference_pass(session: Session, tmp_path: Path, text: str, trusted: str) -> None:
    result = judged(session, problem_file(tmp_path, text), trusted=trusted)
    assert (result.outcome, result.reason) == (Outcome.PASSED, "")


def test_an_honest_kernel_passes_whatever_its_generator_is(session: Session, tmp_path: Path) -> None:
    path = problem_file(tmp_path, EXPONENTIAL)
    assert judged(session, path, source=kernel(DRAWN)).outcome is Outcome.PASSED
    own = (
        "seed = torch.randint(2**31, (1,), generator=generator).item()\n"
        "u = torch.rand(self.shape, generator=torch.Generator().manual_seed(seed)).clamp_min(1e-7)"
    )
    assert judged(session, path, source=kernel(own)).outcome is Outcome.PASSED


@pytest.mark.parametrize(("share", "words"), [(1.0, ""), (0.9, "too small on average")])
def test_timed_calls_are_judged_together(tmp_path: Path, share: float, words: str) -> None:
    """Each of too few samples to say anything."""
    overload = load_problem(problem_file(tmp_path, EXPONENTIAL)).overloads[0]
    judge = RandomJudge(overload, torch.device("cpu"))
    case = next(each for each in expand_cases(overload, "cpu", None, "") if each.phase == "bench")
    call = judge.place(case, torch.Generator().manual_seed(0))
    chunk = call.inputs.chunks["self"]
    for seed in range(10):
        snapshot = torch.zeros(call.end, dtype=torch.uint8)
        after = snapshot[chunk.offset : chunk.offset + chunk.image.numel()]
        after.copy_(chunk.image)
        drawn = torch.empty(4096).exponential_(2.5, generator=torch.Generator().manual_seed(seed))
        chunk.view(after).copy_(drawn * share)
        assert judge.judge(call, snapshot) is PASSED
    assert "same numbers as an earlier call" in judge.judge(call, snapshot).reason
    verdict = judge.conclude()
    assert verdict is PASSED if not words else words in verdict.reason
    assert judge.conclude() is PASSED


def test_an_honest_kernel_passes_its_timed_calls(timed: Session, tmp_path: Path) -> None:
    result = judged(timed, problem_file(tmp_path, EXPONENTIAL), source=kernel(DRAWN))
    assert result.outcome is Outcome.PASSED
    assert (result.cases[-1].phase, result.cases[-1].timing is None) == ("bench", False)


# --- dishonest ---

WRONG = {
    "the same numbers in every call": ("u = torch.rand(self.shape, generator=own.manual_seed(1))", "is not advanced"),
    "deaf to the seed": ("u = torch.rand(self.shape, generator=own)", "was seeded as before and gave other numbers"),
    "deaf to the generator": (
        DRAWN.replace("generator=generator", ""),
        "the generator that is passed was seeded as before",
    ),
    "16 bits of the seed": (
        "g = generator or torch.default_generator\n"
        "seed, position = g.initial_seed(), float(torch.rand(1, generator=g))\n"
        "later = first.setdefault(seed, position) != position\n"
        "u = torch.rand(self.shape, generator=own.manual_seed(seed % 65536 * 2 + later))",
        "was seeded with another number and gave the same numbers",
    ),
    "a constant": ("u = torch.full(self.shape, 0.3)", "is not advanced"),
    "biased": (DRAWN + "\nu[::10] *= 0.5", "too small on average"),
    "another rate": (DRAWN + "\nlambd = 1.0", "self: "),
    "repeating blocks": (DRAWN + "\nu = u[torch.arange(len(u)) % 1024]", "each start the same run"),
    "16 bits of resolution": (DRAWN + "\nu = (u * 65536).floor() / 65536 + 1e-5", "too few bits"),
    "correlated neighbours": (DRAWN + "\nu[1::2] = (u[::2][: len(u) // 2] + 0.1 * u[1::2]) % 1", "self: "),
    "zeros": (DRAWN + "\nu[:] = 0", "which is impossible"),
    "infinity": (DRAWN + "\nu[-1:] = 1", "which is impossible"),
}


@pytest.mark.parametrize("name", WRONG)
def test_dishonest_kernels_fail(session: Session, tmp_path: Path, name: str) -> None:
    body, words = WRONG[name]
    source = kernel(body, "own = torch.Generator()\nfirst = {}")
    result = judged(session, problem_file(tmp_path, EXPONENTIAL), source=source)
    assert result.outcome is Outcome.WRONG_VALUE
    assert words in result.reason


def test_a_new_tensor_is_not_the_one_that_must_come_back(session: Session, tmp_path: Path) -> None:
    source = kernel(DRAWN).replace("return self", "return self.clone()")
    result = judged(session, problem_file(tmp_path, EXPONENTIAL), source=source)
    assert result.outcome is Outcome.REJECTED


RRELU = """\
import torch
def rrelu_with_noise(self, noise, lower, upper, training, generator=None):
    if not training:
        EVAL
        return torch.where(self > 0, self, self * ((lower + upper) / 2))
    slope = lower + (upper - lower) * torch.rand(self.shape, generator=generator)
    slope = torch.where(self > 0, 1.0, slope).to(self.dtype)
    noise.copy_(slope)
    return self * TIMES
"""


@pytest.mark.parametrize(
    ("times", "at_rest", "words"),
    [
        ("slope", "pass", ""),
        ("slope.float().add(1e-6).to(self.dtype)", "pass", "return["),
        ("torch.where(self > 0, slope, slope.flip(0))", "pass", "return["),
        ("slope", "noise.fill_(1)", "noise["),
    ],
)
def test_what_noise_decides_is_judged_by_the_noise(
    session: Session, tmp_path: Path, times: str, at_rest: str, words: str
) -> None:
    source = RRELU.replace("TIMES", times).replace("EVAL", at_rest)
    result = judged(session, problem_file(tmp_path, SLOPES), source=source)
    assert result.outcome is (Outcome.WRONG_VALUE if words else Outcome.PASSED)
    assert words in result.reason


# --- by hand ---


def test_the_other_seed_has_the_low_bits_of_the_first() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        first, again, same, other = _seedings(generator, passed=False)
        assert first == same
        assert again.again
        assert first.default is not None
        assert other.default is not None
        assert 0 <= other.default < 1 << 31
        assert first.default != other.default
        assert (first.default ^ other.default) % (1 << LOW_BITS) == 0


def test_a_generator_that_is_passed_is_seeded_while_the_default_one_changes() -> None:
    first, again, same, other = _seedings(torch.Generator().manual_seed(0), passed=True)
    assert first.own == same.own != other.own
    assert again.again
    assert first.default == other.default != same.default


def test_numbers_that_came_before_are_noticed(tmp_path: Path) -> None:
    overload = load_problem(problem_file(tmp_path, EXPONENTIAL)).overloads[0]
    judge = RandomJudge(overload, torch.device("cpu"))
    assert len(expand_cases(overload, "cpu", None, "")) == 5
    sampled = laws.exponential(torch.empty(100))
    got = sampled.draw(torch.float32, None)
    assert judge._new("self", sampled, got) is None
    assert judge._new("self", sampled, got.clone()) == Seed("self", SeedFault.SEEN_BEFORE)
    few = laws.exponential(torch.empty(2))
    assert judge._new("self", few, got[:2]) is judge._new("self", few, got[:2]) is None
