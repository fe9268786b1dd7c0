"""What kgbench uses of Ray, in one process: nodes that can be killed, and actors whose methods run in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kgbench.cluster.connection import Cluster


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


@dataclass(eq=False)
class Actor:
    """A handle: ``actor.judge.remote(job)`` is a future."""

    instance: Any
    node: str
    under_way: list[Future[Any]] = field(default_factory=list)
    dead: str = ""

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *given: self._call(getattr(self.instance, name), given))

    def _call(self, method: Callable[..., Any], given: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = Future()
        if self.dead:
            future.set_exception(RayError(self.dead))
            return future
        self.under_way.append(future)

        def work() -> None:
            try:
                result = method(*given)
            except BaseException as error:
                result = RayTaskError(f"{type(error).__name__}: {error}")
            if not future.done():
                (future.set_exception if isinstance(result, RayError) else future.set_result)(result)

        threading.Thread(target=work, daemon=True).start()
        return future

    def die(self, why: str) -> None:
        self.dead = self.dead or why
        for future in self.under_way:
            if not future.done():
                future.set_exception(RayError(why))


class Headless(Cluster):
    """Nobody listens at its address, which does not matter."""

    def head_answers(self) -> bool:
        return True


class FakeRay:
    """A cluster in which ``make(node)`` makes the actor of a node."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: node)
    )

    def __init__(self, make: Callable[[str], Any], nodes: Sequence[str] = ("a", "b"), **resources: int) -> None:
        self._make = make
        self.listed = [self._node(name, **resources) for name in nodes]
        self.actors: list[Actor] = []
        self.asked: list[dict[str, Any]] = []
        """Options of every actor."""
        self.head = ""
        """Address of something that listens in the head node's place; empty where there is none."""

    @staticmethod
    def _node(name: str, **resources: int) -> dict[str, Any]:
        found = resources or {"CPU": 1}
        address = {"NodeManagerHostname": name, "NodeManagerAddress": "10.0.0.1"}
        return {"NodeID": name, "Alive": True, "Resources": found, **address}

    def join(self, name: str, **resources: int) -> None:
        self.listed.append(self._node(name, **resources))

    def kill_node(self, name: str) -> None:
        for node in self.listed:
            node["Alive"] &= node["NodeID"] != name
        for actor in self.actors:
            if actor.node == name:
                actor.die("the node died")

    @property
    def cluster(self) -> Cluster:
        return Cluster(self, self.head) if self.head else Headless(self, "10.0.0.1:6379")

    def nodes(self) -> list[dict[str, Any]]:
        return self.listed

    def remote(self, cls: type) -> Any:
        def options(**given: Any) -> Any:
            self.asked.append(given)
            return SimpleNamespace(remote=lambda: self._made(given["scheduling_strategy"]))

        return SimpleNamespace(options=options)

    def _made(self, node: str) -> Actor:
        actor = Actor(self._make(node), node)
        self.actors.append(actor)
        if not any(each["NodeID"] == node and each["Alive"] for each in self.listed):
            actor.die("the node is gone")
        return actor

    def wait(self, refs: Sequence[Future[Any]], *, timeout: float) -> tuple[list[Future[Any]], list[Future[Any]]]:
        found = wait(refs, timeout)
        return list(found.done), list(found.not_done)

    def get(self, ref: Future[Any]) -> Any:
        return ref.result()

    def kill(self, actor: Actor) -> None:
        actor.die("killed")
