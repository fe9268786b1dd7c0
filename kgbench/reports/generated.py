"""Tables of runs that ask a model: samples, rounds, and the cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kgbench.core.figures import ABSENT, dollars, duration, percent, tokens
from kgbench.core.types import Result
from kgbench.scores import rows as scores
from kgbench.scores.costs import Cost, divided
from kgbench.scores.rows import FastP, Row
from kgbench.scores.samples import Selected, after_round

_T = TypeVar("_T")
_MOST_COLUMNS: Final = 6
"""Values of k, or rounds, that stand side by side in 80 columns; the JSON has all."""


@dataclass(frozen=True)
class AfterRounds:
    """The table as if the run had ended after so many rounds."""

    rounds: int
    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        names = ("source", "kinds", "problems", "correct")
        figures = [
            {name: getattr(row, name) for name in names} | {"fast": [asdict(fast) for fast in row.fast]}
            for row in self.rows
        ]
        return {"rounds": self.rounds, "scores": figures}


def samples_asked(info: Mapping[str, Any]) -> int:
    """Number of samples per problem that a model was asked for; 1 where no model was asked."""
    return int(info.get("samples") or 1)


def round_by_round(
    info: Mapping[str, Any], selected: Sequence[Selected], attempts: Sequence[Result], thresholds: Sequence[float]
) -> tuple[AfterRounds, ...]:
    """The table after each round; nothing for a run with one round."""
    rounds = max([int(info.get("rounds") or 1), *(result.round + 1 for result in attempts)])
    if rounds == 1:
        return ()
    return tuple(
        AfterRounds(number + 1, tuple(scores.rows(selected, after_round(attempts, number), thresholds)))
        for number in range(rounds)
    )


def samples_table(rows: Sequence[Row]) -> Table:
    """pass@k and fast_1@k over k."""
    sampled = [row for row in rows if row.at_k]
    ks = side_by_side(sorted({each.k for row in sampled for each in row.at_k}))
    table = bare_table("best of k samples, k =", *map(str, ks))
    for row in sampled:
        at_k = {each.k: each for each in row.at_k}
        right = {k: each.correct for k, each in at_k.items()}
        fast = {k: _fast_1(each.fast) for k, each in at_k.items()}
        for name, shares in (("pass@k", right), ("fast_1@k", fast)):
            if shares[1] is not None:
                cells = (percent(shares[k]) if k in shares else "" for k in ks)
                table.add_row(f"{row.source} {row.kinds} {name}", *cells)
    return table


def cost_table(rows: Sequence[Row], whole: Cost | None) -> Table:
    """Per source, and where there are several of all: the sum, and its mean per sample, problem and solved problem."""
    table = bare_table("asked", "requests", "tokens in", "cached", "out", "time", "cost")
    of_source = {row.source: row.cost for row in rows if row.cost}  # the row of all kinds comes last
    if len(of_source) > 1 and whole is not None:
        of_source["all sources"] = whole
    for name, cost in of_source.items():
        table.add_row(name, *_cells(cost, 1, cached=True))
        for each, count in cost.shares().items():
            if each == "problem" or count != cost.problems:
                table.add_row(f"  a {each}", *_cells(cost, count))
    return table


def asked_lines(attempts: Sequence[Result], whole: Cost | None) -> Iterable[str]:
    """Lines about the models that answered, and about unknown costs."""
    if whole is None:
        return
    made = [result.generation for result in attempts if result.generation]
    ids = sorted({generation.model_id for generation in made} - {""})
    batched = sum(generation.batch for generation in made)
    batch = f", {batched} of {whole.requests} requests in a batch" if batched else ""
    if ids:
        yield f"answered by: {', '.join(ids)}{batch}"
    if whole.unknown_prices:
        rest = f"; the others cost {dollars(whole.known_usd)}" if whole.unknown_prices < whole.requests else ""
        yield f"cost: the price of {whole.unknown_prices} of {whole.requests} requests is unknown{rest}"
    if whole.unknown_tokens:
        yield f"tokens: the provider did not say those of {whole.unknown_tokens} of {whole.requests} requests"


def _cells(cost: Cost, count: int, *, cached: bool = False) -> Iterable[str]:
    """The figures of one line, divided by ``count``."""
    read, sent = cost.cache_read_tokens, cost.input_tokens
    requests = cost.requests / count
    yield f"{requests:.0f}" if requests == int(requests) else f"{requests:.1f}"
    yield tokens(divided(sent, count))
    yield percent(read / sent) if cached and sent and read is not None else ABSENT if cached else ""
    yield tokens(divided(cost.output_tokens, count))
    yield duration(cost.seconds / count)
    yield dollars(divided(cost.usd, count))


def _fast_1(fast: Sequence[FastP]) -> float | None:
    return next((each.interval for each in fast if each.p == 1), None)


def side_by_side(values: Sequence[_T]) -> Sequence[_T]:
    """All columns, or the first ones and the last."""
    return values if len(values) <= _MOST_COLUMNS else [*values[: _MOST_COLUMNS - 1], values[-1]]


def bare_table(first: str, *others: str) -> Table:
    """A table without rows; all columns but the first hold numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
