"""What judging on a Ray cluster adds to a candidate, and what a node costs that is killed in the middle.

    python -m benchmarks.cluster [--pairs 100] [--candidates 300] [--nodes 3] [--json FILE]

Nodes are processes on this machine, each with one CPU device. First the same candidates are judged in turns by a local
session and by one node; then the transport is timed alone, with candidates that nobody has to judge. Then many
candidates are judged on several nodes, of which one is killed when half of them have a verdict: each must get its own
verdict, once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.script import MachineLacks, Script, json_option, shown, smoke_option
from kgbench.cluster.connection import connected
from kgbench.cluster.session import RaySession
from kgbench.core.outcomes import Outcome
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import Registry

RIGHT = """\
def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return self.as_strided(self.shape[::-1], self.stride()[::-1], self.storage_offset())
"""
WRONG = "def t(self):\n    return self.clone()\n"
SETTINGS = Settings(device="cpu", jobs=1, say=lambda words: click.echo(words, err=True))


@click.command(cls=Script)
@click.option("--pairs", default=100, show_default=True, help="Candidates judged here and on a node, in turns.")
@click.option("--candidates", default=300, show_default=True, help="For the part with a kill; 0 leaves it out.")
@click.option("--nodes", default=3, show_default=True, help="Nodes for the part with a kill.")
@json_option
@smoke_option(pairs=2, candidates=0)
def main(pairs: int, candidates: int, nodes: int, json_path: Path | None) -> None:
    """Milliseconds that a cluster adds to a candidate, and a node killed in the middle.

    Ends with 1 where a candidate has no verdict, or not the one that it must get.
    """
    if importlib.util.find_spec("ray") is None:
        raise MachineLacks("needs Ray: pip install 'kgbench[ray]'")
    found: dict[str, Any] = {"overhead": overhead(pairs)}
    click.echo(overhead_words(found["overhead"]))
    if candidates:
        found["kill"] = killed(candidates, nodes)
        click.echo(kill_words(found["kill"]))
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))
    raise SystemExit(int(bool(candidates) and found["kill"]["right"] != candidates))


def overhead(pairs: int) -> dict[str, Any]:
    """Medians in milliseconds: a candidate here, the same on a node, and the transport of one that is not judged."""
    problem = Registry().find("aten/t")
    here, there, transport = [], [], []
    with (
        Session(SETTINGS) as local,
        cluster_of(1) as (address, _),
        connected(address) as cluster,
        RaySession(cluster, SETTINGS) as remote,
    ):
        for session in (local, remote):  # the first one has to start what the others find
            session.evaluate(Job(problem, "warm", 0, RIGHT, timing=False))
        for number in shown(range(pairs), pairs, "pairs"):
            job = Job(problem, "pair", number, RIGHT, timing=False)
            for session, times in ((local, here), (remote, there))[:: 1 - 2 * (number % 2)]:
                times.append(milliseconds(session, job))
        for number in range(10 * pairs):
            transport.append(milliseconds(remote, Job(problem, "unjudged", number)))
    return {
        "pairs": pairs,
        "local_ms": statistics.median(here),
        "ray_ms": statistics.median(there),
        "difference_ms": statistics.median(b - a for a, b in zip(here, there, strict=True)),
        "transport_ms": statistics.median(transport),
        "transport_p99_ms": sorted(transport)[int(0.99 * len(transport))],
    }


def milliseconds(session: Session | RaySession, job: Job) -> float:
    begun = time.perf_counter()
    session.evaluate(job)
    return (time.perf_counter() - begun) * 1e3


def killed(candidates: int, nodes: int) -> dict[str, Any]:
    """Every second candidate is wrong; a node is killed when half of them have a verdict."""
    problem = Registry().find("aten/t")
    with cluster_of(nodes) as (address, kill), connected(address) as cluster, RaySession(cluster, SETTINGS) as session:
        begun = time.monotonic()
        while session.jobs < nodes:
            time.sleep(0.1)
        ready_s, begun = time.monotonic() - begun, time.monotonic()
        jobs = [Job(problem, "many", n, WRONG if n % 2 else RIGHT, timing=False) for n in range(candidates)]
        futures = [session.submit(job) for job in jobs]
        for future in shown(futures[: candidates // 2], candidates, "candidates"):
            future.result()
        done = sum(future.done() for future in futures)
        kill()
        results = [future.result() for future in futures]
        wall_s = time.monotonic() - begun
    wanted = [Outcome.WRONG_SHAPE if n % 2 else Outcome.PASSED for n in range(candidates)]
    right = sum(
        result.outcome is outcome and result.sample == number
        for number, (result, outcome) in enumerate(zip(results, wanted, strict=True))
    )
    return {
        "candidates": candidates, "nodes": nodes, "done_at_kill": done, "right": right, "wall_s": wall_s,
        "until_all_nodes_ready_s": ready_s,
    }  # fmt: skip


@contextlib.contextmanager
def cluster_of(nodes: int) -> Iterator[tuple[str, Any]]:
    """A head that judges nothing and nodes with a core each: its address, and what kills the first node."""
    # No process is started before it is needed.
    os.environ |= {"RAY_enable_worker_prestart": "0", "RAY_prestart_worker_first_driver": "0"}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        added = [cluster.add_node(num_cpus=1) for _ in range(nodes)]
        yield cluster.address, lambda: cluster.remove_node(added[0], allow_graceful=False)
    finally:
        cluster.shutdown()


def overhead_words(found: dict[str, Any]) -> str:
    return (
        f"{found['pairs']} candidates in turns: {found['local_ms']:.1f} ms here, {found['ray_ms']:.1f} ms on a node, "
        f"median difference {found['difference_ms']:.1f} ms; transport alone {found['transport_ms']:.1f} ms, "
        f"99 % below {found['transport_p99_ms']:.1f} ms"
    )


def kill_words(found: dict[str, Any]) -> str:
    return (
        f"{found['candidates']} candidates on {found['nodes']} nodes, one killed after {found['done_at_kill']}, "
        f"{found['wall_s']:.0f} s: {found['right']} have the verdict that they must get"
    )


if __name__ == "__main__":
    main()
