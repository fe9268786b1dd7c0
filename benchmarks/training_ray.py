"""The reward function for verl (``kgbench.evaluation.verl``) on a local Ray cluster, with recorded replies for a model.

    python -m benchmarks.training_ray [PROBLEM]... [--gpus 1] [--workers 2] [--steps 20] [--group 8]

``compute_score`` is called as verl calls it: reply by reply, in several processes. The mean reward must rise.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.script import MachineLacks, Script, json_option, smoke_option
from benchmarks.stand_in_policy import StandIn
from kgbench.evaluation.verl import close, compute_score


class RewardWorker:
    """An actor in the place of verl's RewardLoopWorker."""

    async def scores(self, asked: Sequence[tuple[str, str]], options: dict[str, Any]) -> list[dict[str, float]]:
        """Of (problem, reply) each, all at once."""
        calls = (
            compute_score(data_source="kgbench", solution_str=reply, ground_truth=problem, extra_info={}, **options)
            for problem, reply in asked
        )
        return list(await asyncio.gather(*calls))

    async def close(self) -> None:
        await asyncio.to_thread(close)


@click.command(cls=Script)
@click.argument("problems", nargs=-1)
@click.option("--gpus", default=0, show_default=True, help="Devices that judge, at most; 0 for all.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--workers", default=2, show_default=True, help="Processes that ask for rewards.")
@click.option("--steps", default=20, show_default=True, help="Steps of the policy.")
@click.option("--group", default=8, show_default=True, help="Replies per problem and step.")
@click.option("--timing/--no-timing", default=False, show_default=True, help="Whether speed counts.")
@json_option
@smoke_option(steps=2, group=5)
def main(
    problems: tuple[str, ...],
    gpus: int,
    device: str,
    workers: int,
    steps: int,
    group: int,
    timing: bool,
    json_path: Path | None,
) -> None:
    """Rehearse training on Ray for PROBLEMs (aten/silu)."""
    if importlib.util.find_spec("ray") is None:
        raise MachineLacks("needs Ray: pip install 'kgbench[ray]'")
    import ray

    chosen = problems or ("aten/silu",)
    options = {"gpus": gpus, "device": device, "timing": timing}
    # A cluster of somebody else on this machine is not joined.
    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    actors: list[Any] = [ray.remote(RewardWorker).options(num_cpus=0).remote() for _ in range(workers)]

    def rewards(asked: Sequence[str], replies: Sequence[str]) -> list[float]:
        pairs = list(zip(asked, replies, strict=True))
        found = [0.0] * len(pairs)
        shares = [actor.scores.remote(pairs[n::workers], options) for n, actor in enumerate(actors)]
        for number, share in enumerate(ray.get(shares)):
            found[number::workers] = [each["score"] for each in share]
        return found

    policy, means, seconds = StandIn(chosen), [], 0.0
    try:
        for number in range(steps):
            begun = time.monotonic()
            means.append(policy.step(group, rewards))
            seconds += time.monotonic() - begun if number else 0.0
            click.echo(f"step {number}: mean reward {means[-1]:.2f}")
        ray.get(actors[0].close.remote())
    finally:
        ray.shutdown()
    replies = (steps - 1) * group * len(chosen)
    click.echo(f"{replies} replies in {seconds:.1f} s, {replies / seconds:.1f} per second; the first step started Ray")
    if json_path is not None:
        json_path.write_text(json.dumps({"means": means, "seconds": seconds, "replies": replies}, indent=1))


if __name__ == "__main__":
    main()
