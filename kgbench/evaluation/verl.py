"""The reward function that verl asks for each reply; docs/training.md says how verl is told of it.

verl computes rewards in several processes (``reward.num_workers``); all of them use one evaluator.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from kgbench.core.outcomes import Outcome
from kgbench.evaluation.ray_evaluator import RayEvaluator
from kgbench.evaluation.reward import Reward

_Key = tuple[int, str, bool]
_opened: Final[dict[_Key, RayEvaluator]] = {}
_lock: Final = threading.Lock()
_earned: Final[defaultdict[str, list[float]]] = defaultdict(lambda: [0.0, 0.0])
"""Sum and number of the rewards of this process, by problem."""


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    gpus: int = 0,
    device: str = "auto",
    timing: bool = True,
    **others: Any,
) -> dict[str, float]:
    """The reward of one reply, with the parameters that verl's reward managers give; many may be awaited at once.

    ``ground_truth`` is the problem's id. ``gpus``, ``device`` and ``timing`` are those of ``RayEvaluator`` and come
    from ``reward.custom_reward_function.reward_kwargs``. The first call of a job opens the evaluator on the trainer's
    own cluster; it lasts until ``close``, or as long as the process that opened it. ``score`` is the reward; the rest
    verl logs. A reply of which nothing is known earns the mean of what its problem has earned in this process, 0
    without any. Raises MachineError without Ray or a device, UsageError for a problem that there is not.
    """
    judge = await asyncio.to_thread(_evaluator, (gpus, device, timing))
    reward = Reward(judge)
    found = await asyncio.to_thread(reward.kernel, ground_truth, solution_str)
    if found.code is not None:
        # A thread, since it waits while too many are under way.
        verdict = await asyncio.to_thread(judge.submit, ground_truth, found.code)
        found = reward.judged(found, await asyncio.wrap_future(verdict))
    return {
        "score": _score(ground_truth, found.reward),
        "right": float(found.outcome is Outcome.PASSED),
        "rejected": float(found.outcome is Outcome.REJECTED),
        "unknown": float(found.reward is None),
    }


def close() -> None:
    """End judging, for all processes of the job; the next call of ``compute_score`` starts it again."""
    with _lock:
        while _opened:
            _opened.popitem()[1].close()


def _evaluator(key: _Key) -> RayEvaluator:
    with _lock:
        if key not in _opened:
            gpus, device, timing = key
            name = f"reward {gpus} {device} {timing}"
            _opened[key] = RayEvaluator(device=device, gpus=gpus, timing=timing, name=name)
        return _opened[key]


def _score(problem: str, reward: float | None) -> float:
    earned = _earned[problem]
    if reward is None:
        return earned[0] / earned[1] if earned[1] else 0.0
    earned[0] += reward
    earned[1] += 1
    return reward
