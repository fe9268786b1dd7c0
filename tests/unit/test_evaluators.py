"""The evaluators of a cluster and of a service can stand where the local one does. Neither Ray nor a server."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from kgbench import Evaluator, RayEvaluator, RemoteEvaluator
from kgbench.core.errors import MachineError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.evaluation.evaluator import Checked
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.cancellation import Cancellation, Cancelled


def taken(function: Any) -> dict[str, tuple[Any, str]]:
    """Kind and type of each parameter."""
    return {name: (each.kind, each.annotation) for name, each in inspect.signature(function).parameters.items()}


@pytest.mark.parametrize("other", [RayEvaluator, RemoteEvaluator])
def test_others_have_the_interface_of_the_local_one(other: Any) -> None:
    names = {name for name in vars(Evaluator) if not name.startswith("_")}
    assert {"check", "close", "facts", "jobs", "problem"} <= names <= set(vars(other))
    for name in names:
        here, there = inspect.getattr_static(Evaluator, name), inspect.getattr_static(other, name)
        assert type(here) is type(there), name
        if not isinstance(here, property):
            assert taken(here) == taken(there), name


def test_a_check_on_a_cluster_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = RayEvaluator.__new__(RayEvaluator)
    monkeypatch.setattr(evaluator, "submit", lambda *asked, **options: Future[Checked]())
    cancellation, handed_over = Cancellation(), threading.Event()
    threading.Thread(target=lambda: handed_over.wait(10) and cancellation.cancel(), daemon=True).start()
    with pytest.raises(Cancelled):
        evaluator.check("aten/t", "", on_event=lambda phase, detail: handed_over.set(), cancellation=cancellation)


def test_a_submission_waits_while_as_many_as_may_be_are_under_way() -> None:
    under_way: list[Future[Any]] = []

    def handed_over(job: Job) -> Any:
        under_way.append(Future())
        return SimpleNamespace(future=lambda: under_way[-1])

    front = SimpleNamespace(check=SimpleNamespace(remote=handed_over))
    evaluator = RayEvaluator.__new__(RayEvaluator)
    evaluator._use(SimpleNamespace(exceptions=SimpleNamespace(RayError=OSError)), front, (), 2)
    first, second = (evaluator.submit("aten/t", "") for _ in range(2))
    third: Future[Future[Checked]] = Future()
    waiting = threading.Thread(target=lambda: third.set_result(evaluator.submit("aten/t", "")))
    waiting.start()
    with pytest.raises(TimeoutError):
        third.result(0.2)
    assert len(under_way) == 2
    under_way[0].set_result(Result("aten/t", "m", 0, Outcome.PASSED))
    assert first.result(10).outcome is Outcome.PASSED
    assert not third.result(10).done()
    assert not second.done()
    # What goes wrong makes room, too, and says so.
    under_way[1].set_exception(OSError("it died"))
    with pytest.raises(MachineError, match="the actor that holds the queue is gone: it died"):
        second.result(10)
    assert not evaluator.submit("aten/t", "").done()
    waiting.join()
