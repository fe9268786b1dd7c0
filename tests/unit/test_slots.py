"""Which referee gets which candidate, and who waits for whom; no process is started."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kgbench.core.errors import MachineError
from kgbench.harness.machine.devices import Device
from kgbench.harness.machine.shared_page import SharedPage
from kgbench.harness.session import slots
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.pools import DevicePool, Referee, Slot
from kgbench.harness.session.slots import Slots
from kgbench.harness.wire.protocol import Channel, pair
from tests.harness.living import wait_until

WAIT_S = 30.0
"""Seconds after which a test gives up on a thread."""
STILL_S = 0.1
"""Seconds for which a thread that waits is watched."""


class Devices:
    """Devices by how many candidates each takes, and referees that are nothing but a number."""

    def __init__(self, *most: int) -> None:
        self.said: list[str] = []
        self.ended: list[int] = []
        self.refused: set[int] = set()
        """Slot numbers that no referee starts for."""
        self.slots = Slots(self.start, lambda slot: self.ended.append(slot.number), self.said.append)
        self.pools = self.slots.pools
        self.pools += [
            DevicePool(Device("cuda", f"GPU-{n}", "GPU", index=n), SharedPage.create(), m) for n, m in enumerate(most)
        ]
        self.ends = pair()

    def start(self, pool: DevicePool, number: int) -> Referee:
        if number in self.refused:
            raise MachineError("KGB312", "a referee did not start")
        return Referee(1000 + number, Channel(self.ends[0]))

    def take(self, problem: str = "p", *, exclusive: bool = False) -> Slot:
        return self.slots.take(problem, exclusive=exclusive)

    def close(self) -> None:
        for pool in self.pools:
            pool.page.close()
        for end in self.ends:
            end.close()


@pytest.fixture
def one() -> Iterator[Devices]:
    """One device for two candidates."""
    devices = Devices(2)
    yield devices
    devices.close()


@pytest.fixture
def two() -> Iterator[Devices]:
    """Two devices, each for two candidates."""
    devices = Devices(2, 2)
    yield devices
    devices.close()


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool
        # Who still waits after a test that failed would wait for ever.
        for name in {"one", "two"}.intersection(request.fixturenames):
            request.getfixturevalue(name).slots.close()


def waits(future: Future[Slot]) -> bool:
    with pytest.raises(TimeoutError):
        future.result(STILL_S)
    return True


def test_a_slot_that_judged_the_problem_last_is_taken_first(one: Devices) -> None:
    first, second = one.take("a"), one.take("b")
    for slot, problem in ((first, "a"), (second, "b")):
        slot.problem_id = problem
        one.slots.give_back(slot)
    assert one.take("b") is second
    assert one.take("b") is first


def test_slots_are_spread_over_the_devices(two: Devices) -> None:
    taken = [two.take() for _ in range(4)]
    assert [slot.pool.device.index for slot in taken] == [0, 1, 0, 1]
    assert sorted((slot.pool.device.index, slot.number) for slot in taken) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_who_finds_no_slot_waits_for_the_first_that_is_free(one: Devices, thread: ThreadPoolExecutor) -> None:
    first, _ = one.take(), one.take()
    third = thread.submit(one.take)
    assert waits(third)
    one.slots.give_back(first)
    assert third.result(WAIT_S) is first


def test_a_lost_referee_is_ended_before_its_number_is_used_again(one: Devices) -> None:
    first = one.take()
    one.slots.discard(first)
    assert one.ended == [0]
    again = one.take()
    assert (again.number, again is first) == (0, False)


def test_a_device_for_oneself_is_waited_for_and_nobody_begins_there(one: Devices, thread: ThreadPoolExecutor) -> None:
    busy = one.take()
    alone = thread.submit(one.take, exclusive=True)
    assert waits(alone)
    other = thread.submit(one.take)
    assert waits(other)
    one.slots.give_back(busy)
    slot = alone.result(WAIT_S)
    assert waits(other)
    one.slots.give_back(slot)
    assert other.result(WAIT_S).pool is one.pools[0]


def test_a_device_for_oneself_is_put_off_while_others_wait(one: Devices, thread: ThreadPoolExecutor) -> None:
    first, second = one.take(), one.take()
    other = thread.submit(one.take)
    assert waits(other)
    alone = thread.submit(one.take, exclusive=True)
    assert waits(alone)
    one.slots.give_back(first)
    assert other.result(WAIT_S) is first
    assert wait_until(lambda: one.pools[0].exclusive, WAIT_S)
    late = thread.submit(one.take)
    assert waits(alone)
    assert waits(late)
    one.slots.give_back(second)
    one.slots.give_back(first)
    slot = alone.result(WAIT_S)
    assert waits(late)
    one.slots.give_back(slot)
    assert late.result(WAIT_S).pool is one.pools[0]


def test_it_is_not_put_off_for_ever(one: Devices, thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "DEFERRED_S", 2 * STILL_S)
    first, second = one.take(), one.take()
    other = thread.submit(one.take)
    assert waits(other)
    alone = thread.submit(one.take, exclusive=True)
    assert wait_until(lambda: one.pools[0].exclusive, WAIT_S)
    one.slots.give_back(first)
    assert waits(other)
    one.slots.give_back(second)
    one.slots.give_back(alone.result(WAIT_S))
    assert other.result(WAIT_S).pool is one.pools[0]


def test_a_lost_referee_lets_go_of_the_device_it_had_for_itself(one: Devices) -> None:
    one.slots.discard(one.take(exclusive=True))
    assert one.take().number == 0


def test_where_no_more_referees_start_those_that_run_must_do(one: Devices, thread: ThreadPoolExecutor) -> None:
    one.refused = {1}
    first = one.take()
    second = thread.submit(one.take)
    assert waits(second)
    assert one.slots.jobs == 1
    assert "no more than 1 candidates at once on GPU: a referee did not start" in one.said[0]
    one.slots.give_back(first)
    assert second.result(WAIT_S) is first


def test_the_first_referee_that_does_not_start_is_an_error(one: Devices) -> None:
    one.refused = {0}
    with pytest.raises(MachineError, match="did not start"):
        one.take()
    one.refused = set()
    assert one.take().number == 0


def test_a_device_that_may_have_fewer_gives_one_up(one: Devices) -> None:
    first, second = one.take(), one.take()
    one.slots.at_most(one.pools[0], 1, "crowded")
    one.slots.give_back(first)
    one.slots.give_back(second)
    assert (one.ended, one.pools[0].idle) == ([0], [second])


def test_a_device_takes_one_candidate_at_least(one: Devices) -> None:
    one.slots.at_most(one.pools[0], 0, "crowded")
    assert one.slots.jobs == 1


def test_a_sick_device_gets_no_candidate_and_the_last_one_is_an_error(two: Devices) -> None:
    two.slots.set_aside(two.pools[0], "1 + 1 gave 3")
    two.slots.set_aside(two.pools[0], "1 + 1 gave 3")
    assert (len(two.said), two.slots.jobs) == (1, 2)
    assert {two.take().pool.device.index, two.take().pool.device.index} == {1}
    two.slots.set_aside(two.pools[1], "1 + 1 gave 4")
    with pytest.raises(MachineError, match=r"no device is left that works: GPU GPU-0: 1 \+ 1 gave 3; GPU GPU-1"):
        two.take()


@pytest.mark.parametrize("exclusive", [False, True])
def test_closing_tells_those_who_wait(one: Devices, thread: ThreadPoolExecutor, exclusive: bool) -> None:
    taken = [one.take(), one.take()]
    waiting = thread.submit(one.take, exclusive=exclusive)
    assert waits(waiting)
    assert one.slots.close() == taken
    with pytest.raises(SessionClosed):
        waiting.result(WAIT_S)
    with pytest.raises(SessionClosed):
        one.take()


def test_two_who_want_the_device_for_themselves_have_it_in_turn(one: Devices, thread: ThreadPoolExecutor) -> None:
    first = one.take(exclusive=True)
    begun = threading.Event()

    def second() -> Slot:
        begun.set()
        return one.take(exclusive=True)

    waiting = thread.submit(second)
    assert begun.wait(WAIT_S)
    assert waits(waiting)
    one.slots.give_back(first)
    assert waiting.result(WAIT_S) is first
