"""Starts and ends the referees of one session, by way of a fork server."""

from __future__ import annotations

import contextlib
import secrets
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from kgbench.core.device_facts import PEAKS, device_key, keep, known, noise_of
from kgbench.core.errors import MachineError
from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine import processes
from kgbench.harness.machine.devices import Device
from kgbench.harness.machine.settings import RefereeSettings
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.session.errors import ProcessLost
from kgbench.harness.session.logs import Logs
from kgbench.harness.session.pools import DevicePool, Referee, Slot
from kgbench.harness.session.server import ForkServer
from kgbench.harness.wire.forks import ForkReferee
from kgbench.harness.wire.judging import RefereeFailed, RefereeReady, StartReferee
from kgbench.harness.wire.protocol import Channel, ChannelClosed, ChannelTimeout, ProtocolError, pair
from kgbench.harness.wire.typed import read_one_of

READY_S: Final = 180.0
"""Seconds that a referee may take until it is ready: it looks at its device and imports what judges."""


class Referees:
    """Starts referees that differ only in device and number."""

    def __init__(
        self,
        server: ForkServer,
        entry: str,
        settings: RefereeSettings,
        logs: Logs,
        check_open: Callable[[], None],
        accept: Callable[[Plan], None],
    ) -> None:
        """``entry`` is the session's ``Settings.referee``. ``settings`` are completed per device. ``check_open`` raises
        when nothing may be started any more, ``accept`` when the sandbox is not what the session asks for.
        """
        self.server = server
        self.token = secrets.token_hex(8)
        """Identifies this session's referees to the fork server."""
        self._entry = entry
        self._settings = settings
        self._logs = logs
        self._check_open = check_open
        self._accept = accept
        self._peaks: dict[str, dict[str, Any]] = {}
        """Measured peaks by the GPU's name."""
        self.properties: dict[str, Any] = {}
        """The GPU's, as the last referee that started told them; empty without one."""
        self._cache = tempfile.TemporaryDirectory(prefix="kgbench-referees-")
        """Cache folder for kernels that torch compiles in referees, which have no home. No worker may write here."""
        self._page_lock = threading.Lock()
        self._ended = False
        """True once no process is left and the devices' pages are closed."""

    @property
    def ended(self) -> bool:
        return self._ended

    def know(self, found: Iterable[Device]) -> None:
        """Take over what earlier sessions measured of these devices."""
        kept = {device.name: kept_peaks(device) for device in found}
        self._peaks |= {name: peaks for name, peaks in kept.items() if peaks is not None}

    def start(self, pool: DevicePool, number: int) -> tuple[Referee, dict[str, Any]]:
        """A referee and what it says about its device; one that does not start is replaced once.

        Raises MachineError.
        """
        with contextlib.suppress(ProcessLost):
            return self._try_start(pool, number)
        self._check_open()
        try:
            return self._try_start(pool, number)
        except ProcessLost as error:
            raise MachineError("KGB312", str(error)) from None

    def end(self, slot: Slot) -> None:
        """End the referee of a slot, whatever it is doing, and continue the processes that it had stopped."""
        self._end(slot.pool, slot.number, slot.referee)

    def close(self, pools: Iterable[DevicePool]) -> None:
        """Remove what the session's referees shared, once none is left."""
        with self._page_lock:
            if not self._ended:
                self._ended = True
                self._cache.cleanup()
                for pool in pools:
                    pool.page.close()

    def _try_start(self, pool: DevicePool, number: int) -> tuple[Referee, dict[str, Any]]:
        """Raises ProcessLost when the referee is not ready in time, and MachineError."""
        referee = self._forked(pool)
        try:
            self._accept(self.server.plan)
            settings = self._settings_for(pool, number)
            referee.channel.send(StartReferee(settings.to_json(), self.server.plan.to_json()).encode())
            answer = read_one_of(referee.channel.receive(READY_S), RefereeReady, RefereeFailed)
        except BaseException as error:
            self._end(pool, number, referee)
            if isinstance(error, ChannelClosed | ChannelTimeout | ProtocolError):
                raise ProcessLost(f"a referee did not start: {error}{self._logs.tail('referee')}") from None
            raise
        if isinstance(answer, RefereeFailed):
            self._end(pool, number, referee)
            raise ProcessLost(f"a referee did not start: {answer.reason}")
        self._learn_peaks(pool.device, answer.facts.get("peaks"))
        self.properties = answer.properties
        return referee, answer.facts

    def _forked(self, pool: DevicePool) -> Referee:
        """Raises MachineError."""
        own_end, referee_end = pair()
        server_side, referee_side = pair()
        asked = ForkReferee(self.token, self._entry, pool.device.uuid, self._cache.name)
        with self._logs.opened("referee") as log:
            fds = [server_side.fileno(), referee_end.fileno(), referee_side.fileno(), pool.page.fd, log.fileno()]
            try:
                pid = self.server.fork(asked, fds, self._check_open)
            except BaseException:
                own_end.close()
                raise
            finally:
                for sock in (referee_end, referee_side, server_side):
                    sock.close()
        return Referee(pid, Channel(own_end))

    def _settings_for(self, pool: DevicePool, number: int) -> RefereeSettings:
        device = pool.device
        return replace(
            self._settings,
            device_kind=device.kind,
            device_uuid=device.uuid,
            number=number,
            turn_cores=pool.turn_cores,
            noise=noise_of(device.kind, device.name),
            peaks=self._peaks.get(device.name) if device.kind == DeviceKind.CUDA else None,
        )

    def _end(self, pool: DevicePool, number: int, referee: Referee) -> None:
        """End a referee; its number stays taken."""
        referee.channel.close()
        processes.signal_one(referee.pid, signal.SIGKILL)
        with self._page_lock:
            if not self._ended:
                with pool.page.locked():
                    pool.page.clear(number)
                    pool.page.set_going()

    def _learn_peaks(self, device: Device, peaks: dict[str, Any] | None) -> None:
        """Store the peaks that the first referee of a GPU measured, for all others and for later sessions."""
        if peaks is not None and device.kind == DeviceKind.CUDA and device.name not in self._peaks:
            self._peaks[device.name] = peaks
            keep(PEAKS, device_key(device.kind, device.name), {**peaks, "driver": device.driver})


def kept_peaks(device: Device) -> dict[str, Any] | None:
    """What an earlier session measured of a GPU with this driver; None where none did."""
    kept = known(PEAKS, device_key(device.kind, device.name)) if device.kind == DeviceKind.CUDA else None
    return kept if kept is not None and kept.get("driver") == device.driver and "empty_launch_us" in kept else None
