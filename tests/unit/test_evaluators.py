"""The evaluators of a cluster and of a service can stand where the local one does. Neither Ray nor a server."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from kgbench import Evaluator, RayEvaluator, RemoteEvaluator
from kgbench.evaluation.evaluator import Checked
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
