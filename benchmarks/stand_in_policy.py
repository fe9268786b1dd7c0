"""A policy that needs no model: it replays recorded replies, and learns which of them earn more by GRPO's rule.

It shows on a CPU that a reward function works from end to end: the share of replies that earn most must rise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kgbench.core.paths import examples_dir

RewardFunction = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Rewards of replies, given the problem of each and its text."""
STEP: Final = 1.0
"""How far one unit of advantage moves a reply's logit."""


def recorded_replies(problem: str) -> list[str]:
    """Five replies as models give them for ``aten/NAME``: no code, no Python, a library's call, a wrong kernel, the
    example that ships with kgbench.
    """
    source, _, name = problem.partition("/")
    right = (examples_dir() / source / f"{name}.py").read_text(encoding="utf-8")
    entry = f"def {name}(self, *arguments, **named):\n"
    texts = (
        "I would need to know more about the sizes.",
        f"```python\n{entry}    return (\n```",
        f"```python\nimport torch\n\n{entry}    return torch.ops.aten.{name}(self, *arguments, **named)\n```",
        f"```python\n{entry}    return self.clone()\n```",
    )
    return [*texts, f"Here it is:\n\n```python\n{right}```\n"]


@dataclass
class StandIn:
    """One distribution over the recorded replies of each problem."""

    problems: Sequence[str]
    seed: int = 0
    logits: dict[str, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._replies = {problem: recorded_replies(problem) for problem in self.problems}
        self.logits = {problem: [0.0] * len(replies) for problem, replies in self._replies.items()}

    def probabilities(self, problem: str) -> list[float]:
        most = max(self.logits[problem])
        weights = [math.exp(logit - most) for logit in self.logits[problem]]
        return [weight / sum(weights) for weight in weights]

    def step(self, group: int, rewards_of: RewardFunction) -> float:
        """Draw ``group`` replies for each problem, have them rewarded, and learn; the mean reward."""
        drawn = {
            problem: self._random.choices(range(len(replies)), self.probabilities(problem), k=group)
            for problem, replies in self._replies.items()
        }
        asked = [(problem, number) for problem, numbers in drawn.items() for number in numbers]
        rewards = rewards_of([p for p, _ in asked], [self._replies[p][number] for p, number in asked])
        for start in range(0, len(asked), group):
            self._learn(asked[start : start + group], rewards[start : start + group])
        return math.fsum(rewards) / len(rewards)

    def _learn(self, asked: Sequence[tuple[str, int]], rewards: Sequence[float]) -> None:
        """GRPO: the advantage is the reward less its group's mean, over the group's standard deviation."""
        mean = math.fsum(rewards) / len(rewards)
        deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in rewards) / len(rewards))
        for (problem, number), reward in zip(asked, rewards, strict=True):
            self.logits[problem][number] += STEP * (reward - mean) / (deviation + 1e-4) / len(rewards)
