"""In which order the referee opens, releases and secures a window. The workers only write down what they are told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

import torch

from kgbench.core.details.where import Purpose, Where
from kgbench.core.outcomes import Outcome
from kgbench.harness.clock.quiet import DeviceBusy, Freezer
from kgbench.harness.clock.window import STALLS, OverheadWindow, ProbeWindow, TimedWindow, WindowRunner
from kgbench.harness.wire.buffers import ControlPage
from kgbench.harness.wire.requests import OpenWindow
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Clock
from kgbench.selftest.ablation.bench import NoFreezer, SelfTimedWindows

pytestmark = pytest.mark.torch

WHERE = Where(Purpose.TIMING, "", "1")


class Written:
    """A library and a candidate, their device and their outputs; ``log`` has what happened, in order."""

    def __init__(self, answer: int) -> None:
        self.log: list[str] = []
        self.quiet = True
        self.waited_us = 0.0
        self.posted: list[OpenWindow] = []
        self.clocks = {name: Clock(ControlPage.create()) for name in ("library", "candidate")}
        self.sides = {name: SimpleNamespace(handle=self.handle(name, answer)) for name in self.clocks}
        turns = SimpleNamespace(now=lambda: 0.0)
        self.device = SimpleNamespace(cuda=False, turns=turns, flush=lambda: self.log.append("flush"))
        self.waited_s: list[float] = []
        self.device.is_quiet = lambda deadline_s: self.log.append("look for quiet") or self.is_quiet(deadline_s)
        self.short = True
        self.device.is_short = lambda flush_us: self.short

    def is_quiet(self, deadline_s: float) -> bool:
        self.waited_s.append(deadline_s)
        return self.quiet

    def handle(self, name: str, answer: int) -> SimpleNamespace:
        def post(request: OpenWindow, number: int, where: Where) -> None:
            self.log.append(f"{name} opens")
            self.posted.append(request)
            words = self.clocks[name].page.words
            words[ControlPage.DONE] = words[ControlPage.SECURED] = request.epoch

        def freeze(stopped: bool) -> None:
            self.log.append(f"{name} {'stops' if stopped else 'goes on'}")
            handle.is_frozen = stopped

        handle = SimpleNamespace(channel=answer, control=answer, is_frozen=False, log_tail="", post=post)
        handle.freeze, handle.thaw = lambda: freeze(True) or self.waited_us, lambda: freeze(False)
        handle.check_frozen = lambda: self.log.append(f"does the {name} stand still")
        handle.reply = lambda number, timeout_s, where: {"elapsed_us": 7.0}
        handle.kill = lambda reason: self.log.append(f"{name} killed: {reason}")
        return handle

    def inputs(self, name: str, calls: int) -> Any:
        layout = SimpleNamespace(stride=512)
        overwrite = lambda side: self.log.append(f"{name} overwrite")  # noqa: E731
        return SimpleNamespace(
            rows=range(calls), layout=layout, fill=lambda side: self.log.append(f"{name} in"), overwrite=overwrite
        )

    def runner(self, kind: type[WindowRunner] = WindowRunner, freezer: type[Freezer] = Freezer) -> WindowRunner:
        outputs = SimpleNamespace(secure=lambda side, calls, stride: self.log.append(f"secure {calls} of {stride}"))
        sides, device = cast("Any", self.sides), cast("Any", self.device)
        stopping = freezer(device)
        return kind(sides, self.clocks, device, cast("Any", dict.fromkeys(sides, outputs)), 30.0, stopping)


@pytest.fixture
def written() -> Iterator[Written]:
    """Whoever asks whether a worker has answered finds that it has."""
    reading, writing = os.pipe()
    os.write(writing, b"1")
    yield Written(reading)
    os.close(reading)
    os.close(writing)


def test_the_candidate_is_stopped_while_the_librarys_window_runs(written: Written) -> None:
    runner = written.runner()
    runner.timing = True
    window = runner.run(TimedWindow("library", written.inputs("values", 4), queued=False), WHERE)
    assert written.log == [
        "candidate stops",
        "look for quiet",
        "library opens",
        "values in",
        "flush",
        "library stops",
        "secure 4 of 512",
        "does the candidate stand still",
    ]
    assert (window.side, window.kind, window.calls) == ("library", "window", 4)
    assert written.posted[0] == OpenWindow(epoch=1, calls=4, queued=False, overhead=False)


def test_inputs_come_once_a_queue_is_whole_and_the_candidate_is_stopped(written: Written) -> None:
    written.runner().run(TimedWindow("candidate", written.inputs("values", 4), queued=True), WHERE)
    assert written.log == ["candidate opens", "candidate stops", "values in", "flush", "secure 4 of 512"]


def test_a_queue_of_the_librarys_is_stopped_like_a_candidates(written: Written) -> None:
    written.runner().run(TimedWindow("library", written.inputs("values", 4), queued=True), WHERE)
    assert written.log[1:4] == ["library opens", "library stops", "values in"]


def test_outputs_are_secured_once_the_candidate_is_stopped(written: Written) -> None:
    runner = written.runner()
    runner.run(TimedWindow("candidate", written.inputs("values", 4), queued=False), WHERE)
    assert written.log == ["candidate opens", "values in", "flush", "candidate stops", "secure 4 of 512"]
    runner.settle("candidate")
    assert written.log[-1] == "candidate goes on"
    assert runner.owed == {}


def test_what_nothing_ran_in_until_all_stood_still_is_no_part_of_the_time(written: Written) -> None:
    written.waited_us = 1e9
    window = written.runner().run(TimedWindow("candidate", written.inputs("values", 4), queued=False), WHERE)
    assert -1e9 < window.secured_us - window.done_us < -0.5e9


def test_a_probes_inputs_are_replaced_at_the_mark_and_put_back_before_its_outputs_are_secured(written: Written) -> None:
    values, others = written.inputs("values", 2), written.inputs("others", 2)
    window = written.runner().run(ProbeWindow("candidate", values, False, replacement=others), WHERE)
    assert written.log[2:] == [
        "flush", "candidate stops", "others overwrite", "candidate goes on", "values overwrite", "candidate stops",
        "secure 2 of 512",
    ]  # fmt: skip
    assert window.kind == "probe"


def test_an_overhead_window_has_one_least_call_and_no_outputs(written: Written) -> None:
    window = written.runner().run(OverheadWindow("library", queued=False), WHERE)
    assert (window.kind, window.calls) == ("overhead", 1)
    assert written.posted[0].overhead is True
    look = "does the candidate stand still"
    assert written.log == ["candidate stops", "library opens", "flush", "library stops", "secure 0 of 0", look]


def test_a_device_that_is_not_quiet_times_nothing(written: Written) -> None:
    runner = written.runner()
    runner.timing, written.quiet = True, False
    with pytest.raises(DeviceBusy):
        runner.run(OverheadWindow("library", queued=False), WHERE)
    assert "library opens" not in written.log


def test_a_turn_begins_with_a_longer_wait_for_what_others_queued(written: Written) -> None:
    """Calls of 2^31 elements may be among it."""
    runner = written.runner()
    runner.timing = True
    runner.await_others()
    runner.run(OverheadWindow("library", queued=False), WHERE)
    assert written.waited_s == [5.0, 0.5]
    written.quiet = False
    with pytest.raises(DeviceBusy):
        runner.await_others()


def test_a_flush_that_is_not_short_has_a_librarys_window_wait_for_quiet(written: Written) -> None:
    runner = written.runner()
    runner.timing, written.short = True, False
    runner.run(TimedWindow("library", written.inputs("values", 4), queued=False), WHERE)
    assert written.log[3:7] == ["values in", "flush", "look for quiet", "library stops"]
    runner.settle("library")
    runner.run(TimedWindow("candidate", written.inputs("values", 4), queued=False), WHERE)
    assert written.log.count("look for quiet") == 2, "a candidate's own work is in its time"


def test_a_library_that_is_ready_on_a_busy_device_is_let_go(written: Written) -> None:
    runner = written.runner()
    runner.timing, written.short = True, False
    answers = iter((True, False))
    written.device.is_quiet = lambda deadline_s: next(answers)
    with pytest.raises(DeviceBusy):
        runner.run(TimedWindow("library", written.inputs("values", 4), queued=False), WHERE)
    assert written.clocks["library"].page.words[ControlPage.RELEASE] == written.posted[0].epoch
    assert runner.owed == {"library": (1, WHERE)}


def test_a_candidate_that_is_busy_itself_does_not_make_the_librarys_calls_direct(written: Written) -> None:
    runner, values = written.runner(), written.inputs("values", 4)
    values.layout.first = SimpleNamespace(where=WHERE)
    runner.timing, written.quiet = True, False
    with pytest.raises(DeviceBusy):
        runner.can_queue("library", values)
    assert written.posted == []


@pytest.mark.parametrize("quiet", [True, False])
def test_calls_of_the_librarys_that_keep_the_device_busy_while_they_wait_are_not_queued(
    written: Written, quiet: bool
) -> None:
    runner, values = written.runner(), written.inputs("values", 4)
    values.layout.first = SimpleNamespace(where=WHERE)
    written.quiet = quiet
    assert runner.can_queue("library", values) is quiet
    assert written.log[0] == "candidate stops", "else it could keep the device busy while the library is tried"
    assert runner.can_queue("candidate", values), "its own work is in its time"
    for name, clock in written.clocks.items():
        assert clock.page.words[ControlPage.RELEASE] == written.posted[name == "candidate"].epoch


@pytest.mark.parametrize("step", ["fill", "flush", "secure"])
@pytest.mark.parametrize("queued", [False, True])
def test_a_worker_whose_window_found_no_memory_is_let_go_and_can_be_asked_again(
    written: Written, monkeypatch: pytest.MonkeyPatch, step: str, queued: bool
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError

    runner, values = written.runner(), written.inputs("values", 4)
    owners = {"fill": values, "flush": written.device, "secure": runner.outputs["candidate"]}
    with monkeypatch.context() as crowded:
        crowded.setattr(owners[step], step, full)
        with pytest.raises(torch.OutOfMemoryError):
            runner.run(TimedWindow("candidate", values, queued), WHERE)
    assert written.clocks["candidate"].page.words[ControlPage.RELEASE] == written.posted[0].epoch
    assert runner.owed == {"candidate": (1, WHERE)}
    runner.run(TimedWindow("candidate", values, queued), WHERE)
    assert written.log[-1] == "secure 4 of 512"
    assert written.posted[1].epoch == 2


def test_values_for_which_there_is_no_memory_beside_a_window_are_not_drawn_there(written: Written) -> None:
    def draw() -> None:
        raise torch.OutOfMemoryError

    written.runner().run(TimedWindow("candidate", written.inputs("values", 4), True), WHERE, draw)
    assert written.log[-1] == "secure 4 of 512"


def test_what_is_to_be_done_meanwhile_is_done_once_the_worker_was_asked(written: Written) -> None:
    values = written.inputs("values", 4)
    written.runner().run(TimedWindow("candidate", values, True), WHERE, lambda: written.log.append("draw"))
    assert written.log[:3] == ["candidate opens", "draw", "candidate stops"]


def test_a_queue_that_waits_for_the_device_is_let_go_and_tried_again(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("select.select", lambda *_: ([], [], []))
    with pytest.raises(WorkerFailed) as failed:
        written.runner().run(TimedWindow("candidate", written.inputs("values", 4), queued=True), WHERE)
    assert failed.value.outcome is Outcome.TIMEOUT
    assert written.log == ["candidate opens"] * STALLS + ["candidate killed: deadline"]
    assert written.clocks["candidate"].page.words[ControlPage.RELEASE] == STALLS


def test_only_without_the_referees_clock_is_a_worker_believed(written: Written) -> None:
    believed = written.runner(SelfTimedWindows)
    believed.overhead_us = 5.0
    window = believed.run(TimedWindow("candidate", written.inputs("values", 4), queued=False), WHERE)
    assert (window.done_us, window.secured_us) == (12.0, 12.0)
    window = believed.run(TimedWindow("library", written.inputs("values", 4), queued=False), WHERE)
    assert window.done_us != 12.0
    window = written.runner().run(TimedWindow("candidate", written.inputs("values", 4), queued=False), WHERE)
    assert window.done_us != 7.0


def test_without_the_freezer_the_candidate_runs_on(written: Written) -> None:
    runner = written.runner(freezer=NoFreezer)
    runner.timing = True
    runner.run(TimedWindow("library", written.inputs("values", 4), queued=False), WHERE)
    assert written.log[:-1] == ["library opens", "values in", "flush", "secure 4 of 512"]
