"""A reward function for verl and trainers like it, which run on Ray; docs/training.md says how verl is told of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from kgbench.core.outcomes import Outcome
from kgbench.evaluation.ray_evaluator import RayEvaluator
from kgbench.evaluation.reward import Reward

_opened: dict[tuple[int, str, bool], RayEvaluator] = {}
_lock = threading.Lock()


def compute_score(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[str],
    extra_infos: Sequence[Any],
    *,
    gpus: int = 0,
    device: str = "auto",
    timing: bool = True,
    **others: Any,
) -> list[dict[str, Any]]:
    """The rewards of a batch, in order, as verl's batch reward manager asks for them.

    ``ground_truths`` are problem ids. ``gpus``, ``device`` and ``timing`` are those of ``RayEvaluator`` and come from
    ``custom_reward_function.reward_kwargs``. The first call opens the evaluator on the trainer's own cluster; it lasts
    until ``close``, or as long as the cluster's job. Of each answer ``score`` is the reward; the rest verl averages
    into its log. Raises MachineError without Ray, UsageError for a problem that there is not.
    """
    key = (gpus, device, timing)
    with _lock:
        if key not in _opened:
            _opened[key] = RayEvaluator(device=device, gpus=gpus, timing=timing)
    reward = Reward(_opened[key])
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


def close() -> None:
    """Ends what judges; the next call of ``compute_score`` opens it again."""
    with _lock:
        while _opened:
            _opened.popitem()[1].close()
