"""Which candidate is judged by which referee, and when: a scheduler that starts no process itself.

A device has several slots, each with a referee that judges one candidate at a time. ``take`` waits for a slot,
``give_back`` and ``discard`` free it. All may be called from many threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from kgbench.core.errors import MachineError, numbered
from kgbench.harness.machine.shared_page import MAX_REFEREES
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.pools import DevicePool, Referee, Slot

DEFERRED_S: Final = 900.0
"""Seconds for which a device for oneself is put off while others wait for a slot. Meanwhile it is busy; emptied for one
candidate, it would be idle until the longest of all others has ended, and then but for that one.
"""

Start = Callable[[DevicePool, int], Referee]
End = Callable[[Slot], None]


class Slots:
    """The slots of all devices of a session."""

    def __init__(self, start: Start, end: End, say: Callable[[str], None]) -> None:
        """``start`` gets a device and a slot's number and returns its referee, or raises MachineError; ``end`` ends
        the referee of a slot.
        """
        self.pools: list[DevicePool] = []
        self.closed = False
        """True once the session is closed: nothing new starts."""
        self._start = start
        self._end = end
        self._say = say
        self._changed = threading.Condition()
        self._waiting = 0
        """Candidates that wait for a slot among others."""

    @property
    def jobs(self) -> int:
        """How many candidates may be at work at once, on all devices together."""
        return sum(pool.most for pool in self.pools if not pool.fault)

    def check_open(self) -> None:
        """Raises SessionClosed once the session is closed, MachineError once no device works."""
        if self.closed:
            raise SessionClosed("KGB316", "the session was closed while a candidate was waiting")
        if self.pools and all(pool.fault for pool in self.pools):
            reasons = "; ".join(f"{pool.device.name} {pool.device.uuid}: {pool.fault}" for pool in self.pools)
            raise MachineError("KGB309", f"no device is left that works: {reasons}")

    def add(self, pool: DevicePool, number: int, referee: Referee) -> None:
        """An idle slot whose referee was started already."""
        with self._changed:
            pool.numbers.add(number)
            pool.idle.append(Slot(pool, number, referee))
            self._changed.notify_all()

    def take(self, problem_id: str, *, exclusive: bool) -> Slot:
        """A slot for the problem: a warm one, an idle one, a new one, or the first that becomes free.

        With ``exclusive``, one of a device on which nobody else is at work, and nobody begins until it is given back;
        as long as others wait for a slot, but no longer than ``DEFERRED_S``, they come first.
        Raises MachineError, SessionClosed.
        """
        if exclusive:
            return self._take_exclusive(problem_id)
        with self._changed:
            self._waiting += 1
            try:
                found = self._await_slot(problem_id)
            finally:
                self._waiting -= 1
                self._changed.notify_all()
            if isinstance(found, Slot):
                return found
            number = min(set(range(MAX_REFEREES)) - found.numbers)
            found.numbers.add(number)
        return self._open(problem_id, found, number)

    def give_back(self, slot: Slot) -> None:
        """Free the slot for the next candidate; it is removed where the device has more slots than it may have."""
        if len(slot.pool.numbers) > slot.pool.most:
            self.discard(slot)
            return
        with self._changed:
            if slot in slot.pool.busy:
                slot.pool.busy.remove(slot)
                slot.pool.idle.append(slot)
            self._end_exclusive(slot)
            self._changed.notify_all()

    def discard(self, slot: Slot) -> None:
        """End the slot's referee, which is lost or in an unknown state."""
        self._end(slot)
        with self._changed:
            for slots in (slot.pool.busy, slot.pool.idle):
                if slot in slots:
                    slots.remove(slot)
            slot.pool.numbers.discard(slot.number)
            self._end_exclusive(slot)
            self._changed.notify_all()

    def set_aside(self, pool: DevicePool, reason: str) -> None:
        """Give no further candidate to a broken device; those being judged there notice by themselves."""
        with self._changed:
            if not pool.fault:
                self._say(numbered("KGB604", f"{pool.device.name} {pool.device.uuid} is set aside: {reason}"))
            pool.fault = reason
            self._changed.notify_all()

    def at_most(self, pool: DevicePool, most: int, why: str) -> None:
        """Limit the number of candidates at once on a device from now on; at least one."""
        with self._changed:
            pool.most = max(1, most)
        self._say(numbered("KGB603", f"no more than {pool.most} candidates at once on {pool.device.name}: {why}"))

    def close(self) -> list[Slot]:
        """Start nothing new and wake all waiting threads. Returns all slots."""
        with self._changed:
            self.closed = True
            slots = [slot for pool in self.pools for slot in (*pool.idle, *pool.busy)]
            self._changed.notify_all()
        return slots

    def _await_slot(self, problem_id: str) -> Slot | DevicePool:
        """A slot that is taken, or a device that may have one more. To be called with the lock held."""
        while True:
            self.check_open()
            pools = [pool for pool in self.pools if not pool.fault and not pool.exclusive]
            idle = [slot for pool in pools for slot in pool.idle]
            if idle:
                return self._occupy(next((slot for slot in idle if slot.problem_id == problem_id), idle[0]))
            growing = [pool for pool in pools if len(pool.numbers) < pool.most]
            if growing:
                return min(growing, key=lambda each: len(each.numbers))
            self._changed.wait()

    def _open(self, problem_id: str, pool: DevicePool, number: int) -> Slot:
        """Start one more slot on a device. Where that fails, the existing ones must do."""
        try:
            slot = Slot(pool, number, self._start(pool, number))
        except BaseException as error:
            with self._changed:
                pool.numbers.discard(number)
                others = len(pool.numbers)
                self._changed.notify_all()
            if not isinstance(error, MachineError) or self.closed or not others:
                raise
            self.at_most(pool, others, str(error))
            return self.take(problem_id, exclusive=False)
        with self._changed:
            pool.busy.append(slot)
        return slot

    def _take_exclusive(self, problem_id: str) -> Slot:
        with self._changed:
            self._let_others_pass()
            pool = self._reserve()
            if pool.idle:
                slot = self._occupy(pool.idle[0])
                slot.exclusive = True
                return slot
            number = 0
            pool.numbers.add(number)
        try:
            slot = self._open(problem_id, pool, number)
        except BaseException:
            with self._changed:
                pool.exclusive = False
                self._changed.notify_all()
            raise
        slot.exclusive = True
        return slot

    def _let_others_pass(self) -> None:
        """Wait until nobody waits for a slot among others, ``DEFERRED_S`` at most."""
        until = time.monotonic() + DEFERRED_S
        while self._waiting and (left_s := until - time.monotonic()) > 0:
            self.check_open()
            self._changed.wait(left_s)

    def _reserve(self) -> DevicePool:
        """Reserve a device on which no candidate is being judged any more, so that none starts."""
        while True:
            self.check_open()
            pool = next((each for each in self.pools if not each.fault and not each.exclusive), None)
            if pool is None:
                self._changed.wait()
                continue
            pool.exclusive = True
            try:
                while not pool.fault and len(pool.idle) < len(pool.numbers):
                    self._changed.wait()
                    self.check_open()
                if not pool.fault:
                    return pool
            except BaseException:
                pool.exclusive = False
                raise
            pool.exclusive = False

    def _occupy(self, slot: Slot) -> Slot:
        slot.pool.idle.remove(slot)
        slot.pool.busy.append(slot)
        return slot

    def _end_exclusive(self, slot: Slot) -> None:
        if slot.exclusive:
            slot.exclusive = slot.pool.exclusive = False
