"""Training with TRL's GRPO on kgbench's verdicts; without a model it rehearses with recorded replies on any machine.

    python -m benchmarks.training_grpo [PROBLEM]... [--model NAME] [--steps 20] [--group 8]

``--model`` names a model for TRL (``pip install trl``). Without it a stand-in policy replays recorded replies: the same
reward function, the same judge, and the mean reward must rise.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.script import MachineLacks, Script, device_option, json_option, smoke_option
from benchmarks.stand_in_policy import StandIn
from kgbench import Evaluator, Reward
from kgbench.problem.registry import Registry, load_problem
from kgbench.prompts.render import PromptOptions, prompt_for


def dataset_rows(problems: Sequence[str]) -> list[dict[str, Any]]:
    """One row per problem: what a model is told, and the id that TRL hands back to the reward function."""
    paths = Registry().paths
    prompts = {each: prompt_for(load_problem(paths[each]), PromptOptions()) for each in problems}
    return [
        {
            "problem": problem,
            "prompt": [
                {"role": "system", "content": prompt.system},
                *({"role": turn.role, "content": turn.text} for turn in prompt.turns),
            ],
        }
        for problem, prompt in prompts.items()
    ]


def reward_function(reward: Reward) -> Callable[..., list[float]]:
    """For ``GRPOTrainer(reward_funcs=…)``. TRL passes the columns of the data set by name: ``problem`` is ours."""

    def kgbench_reward(completions: Sequence[Any], problem: Sequence[str], **others: Any) -> list[float]:
        # Conversational data sets give messages, others text.
        replies = [each if isinstance(each, str) else each[-1]["content"] for each in completions]
        return reward(problem, replies)

    return kgbench_reward


def train(model: str, problems: Sequence[str], reward: Reward, group: int, steps: int) -> None:
    from datasets import Dataset  # type: ignore[import-not-found,unused-ignore]
    from trl import GRPOConfig, GRPOTrainer  # type: ignore[import-not-found,unused-ignore]

    settings = GRPOConfig(
        output_dir="training_grpo",
        num_generations=group,
        # TRL refuses a batch that groups do not fill.
        per_device_train_batch_size=group,
        max_steps=steps,
        max_completion_length=8192,
        # A reply of which nothing is known has its group's mean, so it must not be scaled into an advantage.
        scale_rewards="group",
    )
    data = Dataset.from_list(dataset_rows(problems))
    GRPOTrainer(model=model, reward_funcs=reward_function(reward), args=settings, train_dataset=data).train()


def rehearse(problems: Sequence[str], reward: Reward, group: int, steps: int) -> dict[str, Any]:
    """The same reward function with recorded replies; what each step earned, and how long it took."""
    policy, rewards_of = StandIn(problems), reward_function(reward)
    prompts = {row["problem"]: row["prompt"] for row in dataset_rows(problems)}
    means, begun = [], time.monotonic()
    for number in range(steps):
        means.append(policy.step(group, lambda asked, replies: rewards_of(completions=replies, problem=asked)))
        click.echo(f"step {number}: mean reward {means[-1]:.2f}")
    seconds, replies = time.monotonic() - begun, steps * group * len(problems)
    best = {problem: max(policy.probabilities(problem)) for problem in problems}
    click.echo(f"{replies} replies in {seconds:.1f} s, {replies / seconds:.1f} per second")
    characters = sum(len(message["content"]) for prompt in prompts.values() for message in prompt)
    return {"means": means, "seconds": seconds, "replies": replies, "best": best, "prompt_characters": characters}


@click.command(cls=Script)
@click.argument("problems", nargs=-1)
@click.option("--model", metavar="NAME", help="For TRL. Without one, recorded replies.")
@click.option("--steps", default=20, show_default=True, help="Steps of the policy.")
@click.option("--group", default=8, show_default=True, help="Replies per problem and step.")
@click.option("--jobs", default=0, show_default=True, help="Kernels judged at once on each device; 0: what fits.")
@click.option("--timing/--no-timing", default=True, show_default=True, help="Whether speed counts.")
@device_option
@json_option
@smoke_option(steps=3, group=6, device="cpu", jobs=1, timing=False)
def main(
    problems: tuple[str, ...],
    model: str | None,
    steps: int,
    group: int,
    jobs: int,
    timing: bool,
    device: str,
    json_path: Path | None,
) -> None:
    """Train a model, or rehearse with recorded replies, on kernels for PROBLEMs (aten/silu)."""
    chosen = problems or ("aten/silu",)
    if model is not None and importlib.util.find_spec("trl") is None:
        raise MachineLacks("--model needs TRL: pip install trl")
    with Evaluator(device, jobs=jobs, timing=timing) as evaluator:
        if model is not None:
            train(model, chosen, Reward(evaluator), group, steps)
            return
        found = rehearse(chosen, Reward(evaluator), group, steps)
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
