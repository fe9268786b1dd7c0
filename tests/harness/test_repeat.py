"""Some calls are made twice with the same input: the second answer is judged, and changing bits are a fact."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.core.types import Result  # noqa: E402
from kgbench.harness.session.session import Job, Session  # noqa: E402
from kgbench.harness.verdict import repeat  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

pytestmark = pytest.mark.torch

DOT = """import torch

calls = 0

def cublasSdot_v2(n, x, incx, y, incy, result):
    global calls
    calls += 1
    first, second = (v[: max(n - 1, 0) * abs(inc) + 1 : abs(inc)][:n] for v, inc in ((x, incx), (y, incy)))
    first, second = (v.flip(0) if inc < 0 else v for v, inc in ((first, incx), (second, incy)))
    exact = torch.dot(first.double(), second.double())
    result.fill_(exact.item(){changed})
"""
SAME_AGAIN = """import torch

before = None

def softmax_int(self, dim, dtype=None):
    # Right for what is new; what comes twice is answered with half of it.
    global before
    result = torch.softmax(self, dim, dtype=dtype)
    again = before is not None and before.shape == self.shape and torch.equal(before, self) and self.numel() > 1
    before = self.clone()
    return result / 2 if again else result
"""


def judged(session: Session, source: str, problem: str = "aten/softmax") -> Result:
    path = problems_dir() / f"{problem}.yaml"
    return session.evaluate(Job(load_problem(path), "repeat", source=source))


def test_the_same_bits_are_told(session: Session) -> None:
    result = judged(session, DOT.format(changed=""), "cublas/cublasSdot_v2")
    assert (result.outcome, result.deterministic) == (Outcome.PASSED, True)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_bits_are_compared_at_any_stride(count: int) -> None:
    vector = torch.ones(8, dtype=torch.complex128)[1::2][:count]
    assert repeat._equal(vector, vector.clone())
    assert repeat._equal(vector, 2 * vector) is (count == 0)


def test_other_bits_within_the_limit_are_a_fact_and_no_verdict(session: Session) -> None:
    result = judged(
        session, DOT.format(changed=" * (1 + calls % 2 * (exact % 1 != 0).item() * 2.0**-23)"), "cublas/cublasSdot_v2"
    )
    assert (result.outcome, result.deterministic) == (Outcome.PASSED, False)


def test_wrong_the_second_time_is_wrong(session: Session) -> None:
    result = judged(session, SAME_AGAIN)
    assert result.outcome is Outcome.WRONG_VALUE
    assert "correct, then wrong with the same input" in result.reason


@pytest.mark.in_turn("kgbench/harness/verdict/repeat.py", turns=3)
def test_of_chance_nothing_is_said(session: Session) -> None:
    path = problems_dir() / "aten/exponential_.yaml"
    result = session.evaluate(Job(load_problem(path), "repeat", trusted="baseline"))
    assert (result.outcome, result.deterministic) == (Outcome.PASSED, None)
