"""Rewards of replies: what each outcome earns, what is not known, and that a policy learns by them. No torch."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
import sys
import threading
import types
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

import pytest

from benchmarks.stand_in_policy import StandIn, recorded_replies
from benchmarks.training_grpo import dataset_rows, reward_function, train
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Blame, Outcome
from kgbench.core.types import CaseResult, Library
from kgbench.evaluation import verl
from kgbench.evaluation.evaluator import Checked
from kgbench.evaluation.reward import Reward, Shaping
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry
from tests.unit.made_results import timing

SHAPING = Shaping()


def verdict(outcome: Outcome, ratio: float | None = None) -> Checked:
    cases = () if ratio is None else (
        CaseResult("bench-1", "", "bench", "float32", {}, Outcome.PASSED, timing=timing(ratio)),
    )  # fmt: skip
    return Checked("aten/silu", "m", 0, outcome, cases=cases, library=Library("PyTorch"))


class FakeJudge:
    """Judges by words in the kernel's text."""

    jobs = 4

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def problem(self, name: str) -> Problem:
        return Registry().find(name)

    def check(self, problem: str, source: str) -> Checked:
        with self._lock:
            self.asked.append((problem, source))
        if "harness" in source:
            return verdict(Outcome.HARNESS_ERROR)
        if "return (" in source:
            return verdict(Outcome.COMPILE_ERROR)
        if "torch.ops.aten" in source:
            return verdict(Outcome.REJECTED)
        return verdict(Outcome.PASSED, 2.0) if "tl." in source else verdict(Outcome.WRONG_VALUE)


def kernel(text: str) -> str:
    return f"```python\ndef silu(self):\n    {text}\n```"


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_reward_or_says_nothing_of_the_kernel(outcome: Outcome) -> None:
    given = SHAPING.reward(verdict(outcome))
    known = outcome is Outcome.PASSED or outcome.facts.blames is Blame.CANDIDATE
    assert (given is not None) == known
    assert given is None or 0 <= given <= 1


def test_nothing_that_is_not_right_earns_as_much_as_what_is() -> None:
    others = [SHAPING.reward(verdict(each)) for each in Outcome if each is not Outcome.PASSED]
    assert max(each for each in others if each is not None) < SHAPING.right
    assert SHAPING.reward(verdict(Outcome.REJECTED)) == SHAPING.reward(verdict(Outcome.NO_CODE)) == 0.0


def test_the_reward_rises_with_the_lower_end_of_the_speedup_and_ends() -> None:
    ratios = (0.05, 0.125, 0.5, 1.0, 2.0, 5.0, 50.0)
    rewards = [SHAPING.reward(verdict(Outcome.PASSED, each)) for each in ratios]
    assert None not in rewards
    assert rewards == sorted(rewards)  # type: ignore[type-var]
    assert (rewards[0], rewards[1], rewards[-1]) == (0.5, 0.5, 1.0)
    assert 0.5 < rewards[2] < rewards[3] < rewards[4] < 1.0  # type: ignore[operator]
    noisy = verdict(Outcome.PASSED, 2.0)
    case = noisy.cases[0]
    wide = dataclasses.replace(case, timing=dataclasses.replace(case.timing, low=0.125))  # type: ignore[type-var]
    assert SHAPING.reward(dataclasses.replace(noisy, cases=(wide,))) == 0.5


def test_what_ran_in_the_interpreter_earns_nothing_by_speed() -> None:
    interpreted = dataclasses.replace(verdict(Outcome.PASSED, 8.0), interpreted=True)
    assert SHAPING.reward(interpreted) == SHAPING.right


def test_replies_are_taken_apart_and_equal_kernels_judged_once() -> None:
    judge = FakeJudge()
    replies = [kernel("return tl.silu(self)"), "no code", kernel("return self"), kernel("return tl.silu(self)")]
    found = Reward(judge).rewarded(["aten/silu"] * 4, replies)
    assert [each.outcome for each in found] == [Outcome.PASSED, Outcome.NO_CODE, Outcome.WRONG_VALUE, Outcome.PASSED]
    assert len(judge.asked) == 2
    assert found[1].code is None


def test_a_reply_of_which_nothing_is_known_gets_its_problems_mean() -> None:
    reward = Reward(FakeJudge())
    replies = [kernel("return tl.silu(self)"), kernel("harness"), kernel("return self")]
    right, unknown, wrong = reward(["aten/silu"] * 3, replies)
    assert unknown == pytest.approx((right + wrong) / 2)
    assert reward(["aten/silu"], [kernel("harness")]) == [0.0]


def test_each_reply_needs_its_problem() -> None:
    with pytest.raises(ValueError, match="2 problems for 1 replies"):
        Reward(FakeJudge())(["aten/silu"] * 2, ["x"])
    with pytest.raises(UsageError, match="aten/silly"):
        Reward(FakeJudge())(["aten/silly"], ["x"])


def test_trl_gets_numbers_for_messages_and_for_text() -> None:
    rewards_of = reward_function(Reward(FakeJudge()))
    text = kernel("return tl.silu(self)")
    messages = [[{"role": "assistant", "content": text}]]
    assert rewards_of(prompts=[], completions=messages, problem=["aten/silu"], completion_ids=[]) == rewards_of(
        completions=[text], problem=["aten/silu"]
    )
    (row,) = dataset_rows(["aten/silu"])
    assert [each["role"] for each in row["prompt"]] == ["system", "user"]


@pytest.mark.parametrize("group", [6, 8])
def test_trl_is_given_whole_groups_and_the_problem_of_each_prompt(monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    """With modules in the place of TRL and its data sets, which are not installed here."""
    made: list[dict[str, Any]] = []

    class Trainer:
        def __init__(self, **given: Any) -> None:
            made.append(given)

        def train(self) -> None:
            self.trained = True

    trl = types.SimpleNamespace(GRPOConfig=dict, GRPOTrainer=Trainer)
    rows = types.SimpleNamespace(Dataset=types.SimpleNamespace(from_list=list))
    monkeypatch.setitem(sys.modules, "trl", trl)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "datasets", rows)  # type: ignore[arg-type]
    train("a model", ["aten/silu"], Reward(FakeJudge()), group, 2)
    (given,) = made
    assert given["args"]["per_device_train_batch_size"] % given["args"]["num_generations"] == 0
    row = given["train_dataset"][0]
    answer = [{"role": "assistant", "content": kernel("return self")}]
    # As TRL 1.16 calls it.
    more = {"prompts": [row["prompt"]], "completion_ids": [[1]], "trainer_state": None, "log_extra": print}
    assert given["reward_funcs"](completions=[answer], problem=[row["problem"]], **more) == [SHAPING.wrong]


class FakeRayJudge(FakeJudge):
    """``RayEvaluator`` without Ray."""

    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.made.append(options)

    def submit(self, problem: str, source: str) -> Future[Checked]:
        answer: Future[Checked] = Future()
        answer.set_result(self.check(problem, source))
        return answer


def test_verl_gets_the_reward_of_each_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Called with the keywords of verl 0.9's reward managers, which await it where it is a coroutine function."""
    monkeypatch.setattr(verl, "RayEvaluator", FakeRayJudge)
    monkeypatch.setattr(verl, "_opened", {})
    monkeypatch.setattr(FakeRayJudge, "made", [])
    assert inspect.iscoroutinefunction(verl.compute_score)

    async def scores() -> list[dict[str, float]]:
        replies = ("no code", kernel("return self"), kernel("return tl.silu(self)"), kernel("harness"))
        return [
            await verl.compute_score(
                data_source="mine", solution_str=reply, ground_truth="aten/silu", extra_info={"num_turns": 1}, gpus=2,
            )
            for reply in replies
        ]  # fmt: skip

    nothing, wrong, right, unknown = asyncio.run(scores())
    assert nothing == {"score": 0.0, "right": 0.0, "rejected": 0.0, "unknown": 0.0}
    assert (wrong["score"], right["right"], unknown["unknown"]) == (SHAPING.wrong, 1.0, 1.0)
    assert right["score"] > SHAPING.right
    assert unknown["score"] == pytest.approx((wrong["score"] + right["score"]) / 3)
    # One for all processes of the job: they find it by its name.
    assert FakeRayJudge.made == [{"device": "auto", "gpus": 2, "timing": True, "name": "reward 2 auto True"}]


@pytest.mark.in_turn("kgbench/evaluation/reward.py", turns=3)
def test_a_policy_learns_to_give_the_right_kernel() -> None:
    policy, reward = StandIn(["aten/silu"], seed=3), Reward(FakeJudge())
    means = [policy.step(8, reward) for _ in range(60)]
    chances = policy.probabilities("aten/silu")
    assert chances.index(max(chances)) == len(recorded_replies("aten/silu")) - 1
    assert max(chances) > 0.8
    assert sum(means[-10:]) > sum(means[:10])


def test_without_a_difference_a_policy_does_not_move() -> None:
    policy = StandIn(["aten/silu"])

    def same(problems: Sequence[str], replies: Sequence[str]) -> list[float]:
        return [0.3 for _ in replies]

    for _ in range(5):
        policy.step(8, same)
    assert set(itertools.chain(*policy.logits.values())) == {0.0}
