"""The Ray cluster as a driver sees it: connected once, and which nodes it has. The only module that imports Ray."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.errors import MachineError, UsageError
from kgbench.core.kinds import DeviceKind

REACH_S: Final = 5.0
"""Seconds in which the head node of a cluster must accept a connection."""
GONE_S: Final = 20.0
"""Seconds for which a head node may not answer, as while it is started again. After 60 Ray ends the process."""
ADDRESS: Final = "RAY_ADDRESS"
"""The variable that Ray reads where the address is ``auto``."""
_SETTINGS: Final = b"\x04"
"""Type of the frame that every HTTP/2 server sends first, its fourth byte; a head node speaks gRPC, which is HTTP/2."""
_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
"""The first bytes that an HTTP/2 client sends."""


@dataclass(frozen=True)
class Node:
    """A node that is alive."""

    id: str
    name: str
    """Host and address, in words."""
    gpus: int
    cpus: int
    """Cores that Ray may give away there; 0 where the node was started so that it takes no work."""


class Cluster:
    """A connection that is open."""

    def __init__(self, ray: Any, address: str) -> None:
        self.ray = ray
        self.address = address
        self._gone_since: float | None = None

    def head_answers(self) -> bool:
        """Whether the head node takes connections; Ray itself is not asked, since it would wait for it.

        Raises MachineError where it has taken none for too long.
        """
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()
            self._gone_since = None
            return True
        except OSError as error:
            now = time.monotonic()
            self._gone_since = self._gone_since or now
            if now - self._gone_since < GONE_S:
                return False
            words = f"the head node of the Ray cluster at {self.address} has not answered for {GONE_S:g} s: {error}"
            raise MachineError(
                "KGB333", f"{words}. What was finished is kept: kgbench run --resume last --ray HOST:PORT goes on"
            ) from None

    def nodes(self) -> dict[str, Node]:
        """Nodes that are alive, by id. Raises MachineError where the cluster does not answer."""
        try:
            listed = self.ray.nodes()
        except Exception as error:  # whatever Ray raises where its head node is gone
            raise MachineError("KGB333", f"the Ray cluster at {self.address} does not answer: {error}") from error
        return {node.id: node for node in map(_node, listed) if node is not None}

    def kind(self, wanted: str) -> DeviceKind:
        """What ``--device`` means here: with ``auto`` the GPUs where there are any.

        Raises UsageError, and MachineError where no node has what is wanted.
        """
        if wanted not in ("auto", *DeviceKind):
            raise UsageError(
                "KGB155", f"--device {wanted} chooses GPUs of one machine; with --ray there is auto, cpu and cuda"
            )
        nodes = self.nodes().values()
        has_gpu = any(node.gpus for node in nodes)
        if wanted == DeviceKind.CUDA and not has_gpu:
            names = ", ".join(node.name for node in nodes)
            words = f"no node of the Ray cluster at {self.address} has a GPU for Ray: {names}"
            raise MachineError("KGB332", f"{words}; start nodes with `ray start --num-gpus N`, or use --device cpu")
        return DeviceKind.CUDA if has_gpu and wanted != DeviceKind.CPU else DeviceKind.CPU


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster at ``host:port``, or with ``auto`` the one that runs on this machine or that RAY_ADDRESS names.

    A connection that this process has already is used, and stays. Raises MachineError, UsageError.
    """
    ray = _imported()
    if ray.is_initialized():
        yield Cluster(ray, ray.get_runtime_context().gcs_address)
        return
    _check_reachable(address)
    with _signals_kept():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace=f"kgbench-{os.getpid()}")
        except Exception as error:  # ConnectionError, RuntimeError for another version, ValueError and others
            raise MachineError("KGB331", _not_connected(address, error)) from error
        _silence_nodes()
    try:
        yield Cluster(ray, ray.get_runtime_context().gcs_address)
    finally:
        ray.shutdown()


def _imported() -> Any:
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.util.scheduling_strategies")
        return ray
    except ImportError as error:
        words = f"Ray is not installed here ({error}): pip install 'kgbench[ray]', here and on every node"
        raise MachineError("KGB330", words) from error


def _check_reachable(address: str) -> None:
    """Raises MachineError, UsageError; Ray itself would try for long, and end the process in some cases."""
    meant = os.environ.get(ADDRESS, "auto") if address == "auto" else address
    if meant == "auto":
        return
    host, _, port = meant.rpartition(":")
    if "://" in meant or not host or not port.isdigit():
        raise UsageError(
            "KGB155",
            f"--ray {meant}: expected auto or HOST:PORT, what `ray start --head` prints, such as 10.0.0.1:6379",
        )
    try:
        with socket.create_connection((host, int(port)), timeout=REACH_S) as head:
            head.sendall(_HELLO)
            answer = head.recv(9)
    except OSError as error:
        raise MachineError("KGB331", _not_connected(meant, error)) from error
    if answer[3:4] != _SETTINGS:
        raise MachineError("KGB331", _not_connected(meant, ValueError("what listens there is no head node of Ray")))


def _not_connected(address: str, error: Exception) -> str:
    reason = str(error).strip().partition("\n")[0]
    return (
        f"no Ray cluster at {address}: {reason}. Start one with `ray start --head`, look at it with `ray status`, or "
        "give its address: --ray HOST:PORT. One that asks for a token needs RAY_AUTH_MODE=token and that token here"
    )


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray would replace."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _silence_nodes() -> None:
    """Else Ray prints the logs of a node that died on this terminal; what it costs is told by the session."""
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module("ray._private.ray_logging").global_worker_stdstream_dispatcher.remove_handler(
            "ray_print_logs"
        )


def _node(listed: Mapping[str, Any]) -> Node | None:
    if not listed.get("Alive"):
        return None
    resources = listed.get("Resources") or {}
    name = f"{listed.get('NodeManagerHostname')} ({listed.get('NodeManagerAddress')}, {listed['NodeID'][:6]})"
    return Node(listed["NodeID"], name, int(resources.get("GPU", 0)), int(resources.get("CPU", 0)))
