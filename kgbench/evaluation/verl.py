"""A reward function for verl and trainers like it, which run on Ray: judges are actors, one per GPU.

docs/training.md says how verl is told of it. Ray is imported when the first reward is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import threading
from collections.abc import Sequence
from typing import Any

from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.evaluation.evaluator import Checked, Evaluator
from kgbench.evaluation.reward import Reward
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry

_rewards: dict[tuple[int, str, bool], Reward] = {}
_lock = threading.Lock()


class Judge:
    """What an actor is: it holds one evaluator, and so one GPU, for as long as it lives."""

    def __init__(self, device: str, timing: bool) -> None:
        self._evaluator = Evaluator(device, timing=timing)

    def jobs(self) -> int:
        return self._evaluator.jobs

    def check(self, problem: str, source: str) -> Checked:
        return self._evaluator.check(problem, source)


class Judges:
    """Actors in turn, with as much of an evaluator's interface as ``Reward`` asks for.

    Args:
        number: of actors; each takes a GPU of the cluster unless ``device`` is ``cpu``.
        device: as an evaluator's.
        timing: whether speed is judged.
    """

    def __init__(self, number: int, device: str, timing: bool) -> None:
        import ray

        needs: dict[str, Any] = {
            "num_gpus": 0 if device == "cpu" else 1,
            "num_cpus": 1,
            "max_concurrency": 32,
            "max_restarts": -1,
        }
        # verl loads this file under a name of its own, which workers cannot import.
        own = importlib.import_module("kgbench.evaluation.verl")
        actor: Any = ray.remote(**needs)(own.Judge)
        self._actors = [actor.remote(device, timing) for _ in range(number)]
        self.jobs = sum(ray.get([each.jobs.remote() for each in self._actors]))
        self._turns = itertools.cycle(self._actors)
        self._lock = threading.Lock()
        self._registry = Registry()

    def problem(self, name: str) -> Problem:
        return self._registry.find(name)

    def check(self, problem: str, source: str) -> Checked:
        import ray

        with self._lock:
            actor = next(self._turns)
        found: Checked = ray.get(actor.check.remote(problem, source))
        return found


def compute_score(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[str],
    extra_infos: Sequence[Any],
    *,
    judges: int = 1,
    device: str = "cuda",
    timing: bool = True,
    **others: Any,
) -> list[dict[str, Any]]:
    """The rewards of a batch, in order, as verl's batch reward manager asks for them.

    ``ground_truths`` are problem ids. The keyword arguments come from ``custom_reward_function.reward_kwargs``; the
    first call starts the judges, which last as long as the cluster's job. Of each answer ``score`` is the reward; the
    rest verl averages into its log. Raises UsageError without Ray or for a problem that there is not.
    """
    if importlib.util.find_spec("ray") is None:
        raise UsageError("KGB179", "the reward function for Ray trainers needs Ray: pip install 'kgbench[ray]'")
    with _lock:
        key = (judges, device, timing)
        if key not in _rewards:
            _rewards[key] = Reward(Judges(*key))
    reward = _rewards[key]
    found = reward.rewarded(ground_truths, solution_strs)
    return [
        {
            "score": score,
            "right": float(each.outcome is Outcome.PASSED),
            "rejected": float(each.outcome is Outcome.REJECTED),
            "unknown": float(each.reward is None),
        }
        for score, each in zip(reward.filled(found), found, strict=True)
    ]
