"""The reward function for verl (``kgbench.evaluation.verl``) on a local Ray cluster, with recorded replies for a model.

    python -m benchmarks.training_ray [PROBLEM]... [--gpus 1] [--steps 20] [--group 8]

``compute_score`` is called as verl's batch reward manager calls it. The mean reward must rise.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.script import MachineLacks, Script, json_option, smoke_option
from benchmarks.stand_in_policy import StandIn
from kgbench.evaluation.verl import close, compute_score


@click.command(cls=Script)
@click.argument("problems", nargs=-1)
@click.option("--gpus", default=0, show_default=True, help="Devices that judge, at most; 0 for all.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--steps", default=20, show_default=True, help="Steps of the policy.")
@click.option("--group", default=8, show_default=True, help="Replies per problem and step.")
@click.option("--timing/--no-timing", default=False, show_default=True, help="Whether speed counts.")
@json_option
@smoke_option(steps=2, group=5)
def main(
    problems: tuple[str, ...], gpus: int, device: str, steps: int, group: int, timing: bool, json_path: Path | None
) -> None:
    """Rehearse training on Ray for PROBLEMs (aten/silu)."""
    if importlib.util.find_spec("ray") is None:
        raise MachineLacks("needs Ray: pip install 'kgbench[ray]'")
    import ray

    chosen = problems or ("aten/silu",)
    options = {"gpus": gpus, "device": device, "timing": timing}

    def rewards(asked: Sequence[str], replies: Sequence[str]) -> list[float]:
        found = compute_score(["kgbench"] * len(asked), replies, asked, [{}] * len(asked), **options)  # type: ignore[arg-type]
        return [each["score"] for each in found]

    policy, means, seconds = StandIn(chosen), [], 0.0
    # A cluster of somebody else on this machine is not joined.
    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    try:
        for number in range(steps):
            begun = time.monotonic()
            means.append(policy.step(group, rewards))
            seconds += time.monotonic() - begun if number else 0.0
            click.echo(f"step {number}: mean reward {means[-1]:.2f}")
    finally:
        close()
        ray.shutdown()
    replies = (steps - 1) * group * len(chosen)
    click.echo(f"{replies} replies in {seconds:.1f} s, {replies / seconds:.1f} per second; the first step started Ray")
    if json_path is not None:
        json_path.write_text(json.dumps({"means": means, "seconds": seconds, "replies": replies}, indent=1))


if __name__ == "__main__":
    main()
