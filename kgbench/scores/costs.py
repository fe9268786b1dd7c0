"""What the asking of a run took: tokens, seconds and dollars, as pure functions of stored results.

A sum is unknown (None) where one request does not report its figure; the number of such requests stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Generation, Result

NOT_CONFINED: Final = "agent not confined"
"""What tables say of agents that could see what they must not."""


@dataclass(frozen=True)
class Cost:
    """Of all requests of a row, those of every round. None is unknown."""

    requests: int
    samples: int
    problems: int
    """Problems that a model was asked about."""
    solved: int
    """Problems of which a sample is correct."""
    input_tokens: int | None
    """All that was sent: read from a cache, written to one, or neither."""
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    """Thinking included."""
    unknown_tokens: int
    """Requests whose provider did not say its tokens, in or out."""
    seconds: float
    """Sum over the requests, which may have run at the same time."""
    usd: float | None
    known_usd: float
    """Dollars of the requests whose price is known."""
    unknown_prices: int
    """Requests whose price is unknown."""

    def shares(self) -> dict[str, int]:
        """What the figures can be divided by: how many there are of each, none without any."""
        counts = {"sample": self.samples, "problem": self.problems, "solved problem": self.solved}
        return {name: count for name, count in counts.items() if count}

    def to_json(self) -> dict[str, Any]:
        """With the means per sample, problem and solved problem."""
        figures = ("input_tokens", "output_tokens", "seconds", "usd")
        means = {
            name.replace(" ", "_"): {key: divided(getattr(self, key), count) for key in figures}
            for name, count in self.shares().items()
        }
        return {**vars(self), "per": means}


def cost_of(results: Iterable[Result]) -> Cost | None:
    """Over results of which none repeats another; None where no model was asked."""
    asked = [(result, result.generation) for result in results if result.generation]
    if not asked:
        return None
    made = [generation for _, generation in asked]
    read, written = (_sum(made, name, needs=False) for name in ("cache_read_tokens", "cache_write_tokens"))
    fresh = _sum(made, "input_tokens")
    prices = [generation.usd for generation in made if generation.usd is not None]
    return Cost(
        requests=len(made),
        samples=len({(result.problem, result.model, result.sample) for result, _ in asked}),
        problems=len({result.problem for result, _ in asked}),
        solved=len({result.problem for result, _ in asked if result.outcome is Outcome.PASSED}),
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=_sum(made, "output_tokens"),
        unknown_tokens=sum(None in (generation.input_tokens, generation.output_tokens) for generation in made),
        seconds=sum(generation.seconds for generation in made),
        usd=sum(prices) if len(prices) == len(made) else None,
        known_usd=sum(prices),
        unknown_prices=len(made) - len(prices),
    )


def unconfined(results: Iterable[Result]) -> dict[str, int]:
    """How many results come from agents that were not confined, by why."""
    reasons: dict[str, int] = {}
    for result in results:
        if result.generation and (reason := result.generation.not_confined):
            reasons[reason] = reasons.get(reason, 0) + 1
    return reasons


def divided(figure: float | None, count: int) -> float | None:
    return None if figure is None else figure / count


def _sum(made: Sequence[Generation], name: str, *, needs: bool = True) -> int | None:
    """Of one kind of tokens. A provider that says its input and nothing of a cache has none (``needs`` is False)."""
    counts: list[int | None] = [getattr(generation, name) for generation in made]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) or (known and not needs) else None
