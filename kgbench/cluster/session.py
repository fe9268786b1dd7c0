"""Judges candidates on the devices of a Ray cluster: what a ``Session`` is on one machine. Never imports torch.

Each device has an actor with a session of its own, and on the driver's side one thread that starts it and one per slot.
Nodes that join are checked and used; what a device that died was judging goes back into the queue. Only the driver
knows what is judged, so nothing is judged twice into a result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from kgbench.cluster.actor import Hello, Opened, Refusal
from kgbench.cluster.alike import device_differences, kgbench_difference
from kgbench.cluster.connection import Cluster, Node
from kgbench.cluster.device import Device, Lost, Refused
from kgbench.cluster.queue import Slot, Task, TaskQueue
from kgbench.core.details.absence import Fault
from kgbench.core.errors import KgbenchError, MachineError, numbered
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.retry import trouble, without_evaluation
from kgbench.harness.session.session import Settings

MOST_LOST: Final = 3
"""How often a candidate is judged again because what judged it was gone; then it is a harness error."""
MOST_STARTS: Final = 3
"""How often a device's actor is started in a row without one verdict."""
LOOK_S: Final = 2.0
"""Seconds between two looks at the nodes."""

OnEvent = Callable[[str, str], None]


class RaySession:
    """Devices of a cluster, for as long as the block lasts.

    Args:
        cluster: a connection that stays open meanwhile.
        settings: how to evaluate. ``device`` is ``auto``, ``cpu`` or ``cuda``; ``gpus`` devices at most, 0 for all.
        folders: of the user's own problems, which every node has at the same place.
        mixed: devices of one kind may be of several models; each result says which one judged it.
        like: facts of an earlier session that every device has to be like; None takes those of the first that is ready.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        *,
        folders: Sequence[str] = (),
        mixed: bool = False,
        like: Mapping[str, Any] | None = None,
    ) -> None:
        self.facts: dict[str, Any] = {}
        self._cluster, self._settings, self._mixed = cluster, replace(settings, say=print), mixed
        self._folders = tuple(folders)
        self._say = settings.say
        self._kind = cluster.kind(settings.device)
        self._queue = TaskQueue()
        self._like = like
        self._pattern = "what the run was started with"
        """The session that devices are compared with, in words."""
        self._seen: set[str] = set()
        """Ids of nodes that were looked at."""
        self._devices: list[Device] = []
        """Devices that are starting or judging."""
        self._left_out: dict[str, str] = {}
        """Why a device is left out, by its name."""
        self._timed_s = 0.0
        """Seconds of timing by actors that have ended."""
        self._closed = False
        self._error: KgbenchError | None = None
        self._changed = threading.Condition()

    def __enter__(self) -> RaySession:
        begun = time.monotonic()
        try:
            self._look()
            with self._changed:
                while not self.facts and self._error is None and self._devices:
                    self._changed.wait()
                if not self.facts:
                    raise self._error or self._nobody()
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._keep_looking, name="nodes", daemon=True).start()
        self.facts["start_s"] = round(time.monotonic() - begun, 3)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def jobs(self) -> int:
        """How many candidates may be at work at once, on all devices together; it grows with nodes that join."""
        with self._changed:
            return max(1, sum(device.jobs for device in self._devices))

    @property
    def most(self) -> int:
        """``jobs``: what waits longer is not compiled ahead from here."""
        return self.jobs

    @property
    def timed_s(self) -> float:
        """Seconds of all devices together in which something was being timed."""
        with self._changed:
            return self._timed_s + sum(device.timed_s for device in self._devices)

    def evaluate(self, job: Job, on_event: OnEvent = lambda phase, detail: None) -> Result:
        """As ``Session.evaluate``; of a candidate's phases it is told only which device judges it."""
        return self.submit(job, on_event).result()

    def submit(self, job: Job, on_event: OnEvent = lambda phase, detail: None) -> Future[Result]:
        """The result once it is there. The future raises what ``evaluate`` raises, and cannot be cancelled."""
        task = Task(job, on_event)
        task.future.set_running_or_notify_cancel()
        self._queue.put(task)
        return task.future

    def close(self) -> None:
        """Ends every actor with all that it started. Whoever waits gets SessionClosed."""
        with self._changed:
            self._closed = True
            devices = list(self._devices)
            self._changed.notify_all()
        self._queue.close(SessionClosed("KGB316", "the session was closed while a candidate was waiting"))
        for device in devices:
            device.end("the session was closed")
        killers = [threading.Thread(target=device.kill, daemon=True) for device in devices]
        for thread in killers:
            thread.start()
        for thread in killers:
            thread.join()

    # --- nodes ---

    def _keep_looking(self) -> None:
        while not self._closed:
            time.sleep(LOOK_S)
            try:
                if self._cluster.head_answers():
                    self._look()
            except KgbenchError as error:
                self._fail(error)
                return

    def _look(self) -> None:
        """Starts a device on each place of a node that was not there before. Raises MachineError."""
        nodes = self._cluster.nodes()
        with self._changed:
            if self._closed:
                return
            new = [device for node in nodes.values() if node.id not in self._seen for device in self._places(node)]
            most = self._settings.gpus or len(self._devices) + len(new)
            new = new[: max(0, most - len(self._devices))]
            self._seen |= nodes.keys()
            self._devices += new  # all of them, before the first can end as if it were the last
        for device in new:
            threading.Thread(target=self._serve, args=(device,), name=device.name, daemon=True).start()

    def _places(self, node: Node) -> list[Device]:
        """A node's devices."""
        count = min(1, node.cpus) if self._kind == DeviceKind.CPU else node.gpus
        if self._kind == DeviceKind.CUDA and not count:
            words = f"{node.name} has no GPU for Ray and judges nothing; nodes without a GPU judge with --device cpu"
            self._say(numbered("KGB644", words))
        numbers = range(count)
        made = (Device(self._cluster, node, n, self._kind, self._settings, self._folders, self._say) for n in numbers)
        return list(made)

    # --- one device; in a thread of its own ---

    def _serve(self, device: Device) -> None:
        try:
            while self._serve_once(device):
                pass
        except BaseException as error:  # a bug of ours must not leave candidates waiting for ever
            self._queue.close(error)
            raise
        finally:
            self._gone(device)

    def _serve_once(self, device: Device) -> bool:
        """One actor's life; whether to start another one there."""
        lost = ""
        try:
            with device.started() as hello:
                self._check_software(hello)
                opened = device.open()
                self._check_device(device, hello, opened)
                slots = [
                    threading.Thread(target=self._work, args=(device, Slot(device.name, number)), daemon=True)
                    for number in range(opened.jobs)
                ]
                for thread in slots:
                    thread.start()
                for thread in slots:
                    thread.join()
                lost = device.why
        except Refused as error:
            return self._leave_out(device, str(error))
        except Lost as error:
            lost = str(error)
        finally:
            with self._changed:
                self._timed_s, device.timed_s, device.jobs = self._timed_s + device.timed_s, 0.0, 0
            self._queue.forget(device.name)
        if self._closed:
            return False
        if device.refused:
            return self._leave_out(device, lost)
        if not device.alive():
            return self._leave_out(device, f"the node is gone ({lost}); what it was judging is judged elsewhere")
        if device.starts >= MOST_STARTS:
            return self._leave_out(device, f"its actor was lost {device.starts} times: {lost}")
        self._say(numbered("KGB643", f"{device.name} is started again: {lost}"))
        return True

    def _work(self, device: Device, slot: Slot) -> None:
        """Judges one candidate after the other, until the device has ended."""
        while (task := self._queue.take(slot, lambda: bool(device.why))) is not None:
            task.on_event("judging", device.name)
            try:
                answer = device.judge(task.job)
            except Lost as error:
                device.end(str(error))
                self._judge_again(task, f"{device.name}: {error}")
                return
            except BaseException as error:
                task.future.set_exception(error)
                continue
            if isinstance(answer, Refusal):
                # The device does not work any more, which is no fault of the candidate's.
                device.end(answer.words, refused=True)
                self._queue.put(task)
                return
            task.future.set_result(replace(answer.result, device_name=device.model))

    def _judge_again(self, task: Task, words: str) -> None:
        task.lost += 1
        if task.lost < MOST_LOST or self._closed:
            self._queue.put(task)
            return
        detail = trouble(Fault.LOST, f"what judged it was lost {task.lost} times, last {words}")
        task.future.set_result(without_evaluation(task.job, Outcome.HARNESS_ERROR, detail, self._kind))

    # --- who may judge ---

    @staticmethod
    def _check_software(hello: Hello) -> None:
        """Raises Refused."""
        if hello.lacks:
            lacks = ", ".join(hello.lacks)
            raise Refused(f"it has no folder {lacks}; problems of your own have to lie where every node sees them")
        if difference := kgbench_difference(hello):
            raise Refused(f"{difference}; install the same there")

    def _check_device(self, device: Device, hello: Hello, opened: Opened) -> None:
        """Accept a device; the first one sets what the others must be like. Raises Refused."""
        with self._changed:
            like = self._like or self.facts
            differences = "; ".join(device_differences(like, opened.facts, mixed=self._mixed)) if like else ""
            if differences:
                raise Refused(f"it is not like {self._pattern}: {differences}")
            if not self.facts:
                self._pattern = device.name if self._like is None else self._pattern
                self.facts |= {**opened.facts, "devices": [], "jobs": opened.jobs}
            place = {"node": device.node.name, "host": hello.host}
            self.facts["devices"] = [
                *self.facts["devices"],
                *({**each, "name": opened.facts["name"], **place} for each in opened.facts["devices"]),
            ]
            device.jobs, device.model = opened.jobs, str(opened.facts["name"])
            self._changed.notify_all()

    def _leave_out(self, device: Device, words: str) -> bool:
        self._left_out[device.name] = words
        self._say(numbered("KGB642", f"{device.name} is left out: {words}"))
        return False

    def _gone(self, device: Device) -> None:
        with self._changed:
            self._devices.remove(device)
            last = not self._devices and not self._closed
            self._changed.notify_all()
        if last:
            self._fail(self._nobody())

    def _nobody(self) -> MachineError:
        reasons = "".join(f"\n  {name}: {words}" for name, words in self._left_out.items())
        words = f"no node of the Ray cluster at {self._cluster.address} judges:{reasons or ' it has none with cores'}"
        return MachineError("KGB332", words)

    def _fail(self, error: KgbenchError) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()
        self._queue.close(error)
