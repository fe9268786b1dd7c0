"""A model's time without and with a package: in which order, and what is said where it cannot be recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kgbench.torchtools import backend_speed  # noqa: E402

pytestmark = pytest.mark.torch


class Recorder:
    """Stands for a GPU that records: what was launched while it did is called again in each repetition."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.waited = 0

    def wait(self) -> None:
        self.waited += 1

    def another_stream(self) -> Any:
        return contextlib.nullcontext()

    def recorded(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nCompile with DSA")
        result = work()
        return lambda: None, result


def made(monkeypatch: pytest.MonkeyPatch, gpu: Recorder) -> tuple[list[str], Any, Any]:
    """The calls of both sides as they come, the work, and the block in which kernels are in place."""
    calls: list[str] = []
    active: list[bool] = []

    @contextlib.contextmanager
    def enabled() -> Iterator[None]:
        active.append(True)
        try:
            yield
        finally:
            active.pop()

    def work(side: str) -> str:
        calls.append(f"{side} {'kernels' if active else 'library'}")
        return side

    monkeypatch.setattr(backend_speed, "GPU", gpu)
    return calls, work, enabled


def test_both_sides_are_warm_before_they_are_recorded_each_in_its_own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Recorder()
    calls, work, enabled = made(monkeypatch, gpu)
    found, results = backend_speed.speed_recorded(work, enabled, 5, "cuda:0")
    assert calls == ["without library"] * 4 + ["with kernels"] * 4
    assert results == {"without": "without", "with": "with"}
    assert set(found) == {"without_ms", "with_ms", "ratio"}
    assert gpu.waited == 2 + 5 * 2 * 2


def test_what_cannot_be_recorded_says_why_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    _, work, enabled = made(monkeypatch, Recorder(fails=True))
    found, results = backend_speed.speed_recorded(work, enabled, 5, "cuda:0")
    assert not results
    assert found["why"].startswith("RuntimeError: operation not permitted")
    assert "\n" not in found["why"]


def test_whole_calls_alternate_and_putting_kernels_in_place_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Recorder()
    calls, work, enabled = made(monkeypatch, gpu)
    waited: list[int] = []

    @contextlib.contextmanager
    def watched() -> Iterator[None]:
        waited.append(gpu.waited)
        with enabled():
            yield
        waited.append(gpu.waited)

    found = backend_speed.speed(work, watched, 2, "cuda:0")
    assert calls == ["without library", "with kernels"] * 2
    assert found["ratio"] == pytest.approx(found["without_ms"] / found["with_ms"])
    assert waited == [2, 4, 6, 8], "a time begins and ends with a wait, both inside the block"
