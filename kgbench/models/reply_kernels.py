"""From a model's reply to its kernel, its record in a result, and the next round's question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kgbench.core.details.absence import CodeProblem
from kgbench.core.text import number_of
from kgbench.core.types import Generation, Result
from kgbench.llm.conversation import (
    Reply,
    Sampling,
    Stop,
    Turn,
)
from kgbench.models.replies import Extracted, code_of
from kgbench.problem.model import Problem
from kgbench.prompts.feedback import feedback_turn
from kgbench.store.replies import StoredReply


def code_for(problem: Problem, text: str) -> Extracted:
    """The kernel for a problem in a reply's text."""
    # The bare name is an entry too: kgbench/problem/entry_names.py's entry_names has when.
    return code_of(text, [*(overload.signature.name for overload in problem.overloads), problem.name])


def kernel_of(problem: Problem, reply: Reply, sampling: Sampling) -> Extracted:
    """The kernel in a reply: of an agent's, the file that it wrote."""
    if reply.code:
        return Extracted(reply.code, "the file that the agent wrote")
    found = code_for(problem, reply.text)
    if found.code is None and reply.stop is Stop.MAX_TOKENS:
        words = f"the reply was cut off at {sampling.max_tokens} tokens (--max-tokens): {found.why}"
        return Extracted(None, words, CodeProblem.CUT_OFF)
    if found.code is None and reply.stop is not Stop.END:
        words = f"{reply.stop}{f' ({reply.detail})' if reply.detail else ''}: {found.why}"
        return Extracted(None, words, CodeProblem.STOPPED)
    return found


def generation_of(reply: Reply, usd: float | None, prompt_sha256: str) -> Generation:
    """The record of a reply in a result."""
    checks = reply.facts.get("checks")
    return Generation(
        model_id=reply.model_id,
        **asdict(reply.usage),
        seconds=reply.seconds,
        usd=usd,
        stop=str(reply.stop),
        prompt_sha256=prompt_sha256,
        batch=reply.batch,
        checks=len(checks) if checks is not None else None,
        confined=str(reply.facts.get("confined", "")),
        not_confined=str(reply.facts.get("not_confined", "")),
    )


def next_turns(
    problem: Problem, last: StoredReply | None, verdict: Result, peaks: Mapping[str, Any] | None
) -> tuple[Turn, Turn]:
    """What a further round is asked with: the model's last kernel, or what it said in its place, and the verdict."""
    kernel = (last.code if last else None) or ""
    said = last.reply.text if last and last.reply else ""
    answer = f"```python\n{kernel.rstrip()}\n```" if kernel else said.strip()
    return Turn("assistant", answer or "(nothing)"), Turn("user", feedback_turn(problem, kernel, verdict, peaks=peaks))


def reply_words(stored: StoredReply) -> str:
    """``1,204 tokens, $0.018, 41 s``"""
    if stored.reply is None:
        return stored.why
    tokens = stored.reply.usage.output_tokens
    parts = [f"{tokens:,} tokens" if tokens is not None else "", f"${stored.usd:.3f}" if stored.usd else ""]
    checks = stored.reply.facts.get("checks")
    parts += [f"{stored.reply.seconds:.0f} s", number_of(len(checks), "check") if checks is not None else ""]
    parts += ["" if stored.code else f"no code: {stored.why}"]
    return ", ".join(filter(None, parts))
