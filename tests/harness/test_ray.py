"""A run on a real Ray cluster of several nodes with CPU devices: a node that dies loses nothing.

benchmarks/cluster.py does the same with hundreds of candidates.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kgbench import RayEvaluator
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.evaluation.evaluator import Checked
from kgbench.store.reader import read_run
from tests.harness.living import wait_until
from tests.harness.sessions import kgbench

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("ray"),
    pytest.mark.in_turn("kgbench/cluster/", together=True),
    # Ray leaves sockets and files to its processes' end.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
RIGHT = """\
def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return self.as_strided(self.shape[::-1], self.stride()[::-1], self.storage_offset())
"""
WRONG = "def t(self):\n    return self.clone()\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that judges nothing and two nodes with a core each."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_enable_worker_prestart", "0")
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        try:
            found.nodes = [found.add_node(num_cpus=1) for _ in range(2)]
            yield found
        finally:
            ray.shutdown()
            found.shutdown()


def test_what_a_killed_node_was_judging_is_judged_elsewhere_and_once(cluster: Any, tmp_path: Path) -> None:
    for sample in range(8):
        path = tmp_path / "kernels" / "aten" / f"t.{sample}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Longer than it takes until Ray knows that the node is gone, and at no cost.
        path.write_text(f"import time\n\ntime.sleep(1.5)\n\n\n{WRONG if sample % 2 else RIGHT}")
    results, killed = tmp_path / "runs", list[str]()

    def written() -> int:
        return sum(path.read_bytes().count(b"\n") for path in results.glob("*/results.jsonl"))

    def kill_in_the_middle() -> None:
        """The node that judges; the other one may be starting still."""
        if wait_until(lambda: written() >= 2, 200.0):
            [info] = results.glob("*/run.json")
            judging = json.loads(info.read_text())["device"]["devices"][0]["node"]
            victim = next(node for node in cluster.nodes if node.node_id[:6] in judging)
            killed.append(victim.node_id[:6])
            cluster.remove_node(victim, allow_graceful=False)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    done = kgbench(
        tmp_path, "run", "--ray", cluster.address, "--model", "dir:kernels", "--problems", "aten/t", "--device", "cpu"
    )
    killer.join()
    assert done.returncode == 0, done.stderr
    assert re.search(rf"KGB64[23]: .*{killed[0]}", done.stderr), done.stderr
    [path] = results.iterdir()
    run = read_run(path)
    assert run.info["status"] == "finished"
    assert len(run.info["device"]["devices"]) == 2
    # Each line of the file, so that none was written twice.
    assert sorted(each.sample for each in run.results) == list(range(8))
    assert {each.sample % 2: each.outcome for each in run.results} == {0: Outcome.PASSED, 1: Outcome.WRONG_SHAPE}
    assert run.results[0].device_name == run.info["device"]["name"]


def test_one_evaluator_serves_every_process_of_a_job(cluster: Any) -> None:
    with RayEvaluator(cluster.address, device="cpu", timing=False, most_in_flight=2) as evaluator:
        verdicts: list[Future[Checked]] = [evaluator.submit("aten/t", each) for each in (RIGHT, WRONG)]

        @ray.remote(num_cpus=0)
        def elsewhere(shared: RayEvaluator) -> str:
            return str(shared.check("t", RIGHT).outcome)

        assert ray.get(elsewhere.remote(evaluator)) == "passed"
        assert [each.result().outcome for each in verdicts] == [Outcome.PASSED, Outcome.WRONG_SHAPE]
        assert evaluator.check("aten/t", WRONG).reward(0.0) == 0.0
        assert evaluator.jobs == 1
        assert evaluator.facts["kind"] == "cpu"
        with pytest.raises(UsageError, match="there is no problem"):
            evaluator.check("nosuch", RIGHT)
