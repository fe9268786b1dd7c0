"""How long prompts are in tokens of published tokenizers, beside kgbench's estimate, which knows none of them.

    python -m benchmarks.prompt_tokens [--language any] [--shots 1] [--problems GLOB]

Uses ctok (a reconstruction of Claude's counts; Python 3.12) and bpe-openai, in an environment of their own; the rows of
one that is not installed are left out, and a note says so. Prints per tokenizer mean and largest, and the fewest bytes
for one token: kgbench/prompts/tokens.py must stay below all of them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import click

from benchmarks.script import Script, shown, smoke_option
from kgbench.problem.registry import Registry, load_problem
from kgbench.prompts.facts import torch_facts
from kgbench.prompts.render import LANGUAGES, PromptOptions, prompt_for
from kgbench.prompts.tokens import estimated_tokens


def _tokenizers() -> dict[str, Callable[[str], int]]:
    """How to count, by the row's name, with the tokenizers that are installed; the estimate always."""
    found: dict[str, Callable[[str], int]] = {}
    if (ctok := _installed("ctok")) is not None:
        found["Claude 4.8 and newer (ctok)"] = lambda text: int(ctok.token_count(text, "4.8"))
        found["Claude 3 to 4.6 (ctok)"] = lambda text: int(ctok.token_count(text, "3.0"))
    if (openai := _installed("bpe_openai")) is not None:
        encoding = openai.get_encoding("o200k_base")
        found["GPT (o200k_base)"] = lambda text: len(encoding.encode(text))
    return {**found, "estimate": estimated_tokens}


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        click.echo(f"note: {name} is not installed; its rows are left out", err=True)
        return None


@click.command(cls=Script)
@click.option(
    "--language",
    type=click.Choice(list(LANGUAGES)),
    default="triton",
    show_default=True,
    help="Asked for in the prompt.",
)
@click.option("--shots", type=int, default=0, show_default=True, help="Worked examples in each prompt.")
@click.option("--problems", "pattern", default="*", show_default=True, metavar="GLOB", help="Problems by id.")
@smoke_option(pattern="aten/softmax")
def main(language: str, shots: int, pattern: str) -> None:
    """How long prompts are in tokens of published tokenizers and by kgbench's estimate."""
    registry = Registry()
    chosen = registry.select(globs=(pattern,))
    problems = [load_problem(registry.paths[each]) for each in chosen]
    facts = torch_facts(problems)
    if facts.missing:
        print(f"note: {facts.missing}", file=sys.stderr)
    options = PromptOptions(language=language, shots=shots)
    texts = {
        problem.id: prompt_for(problem, options, facts).text for problem in shown(problems, len(problems), "prompts")
    }
    print(f"{len(texts)} prompts, {sum(map(len, texts.values())) / len(texts):,.0f} characters on average")
    for name, count in _tokenizers().items():
        counts = {problem: count(text) for problem, text in texts.items()}
        largest = max(counts, key=lambda problem: counts[problem])
        fewest = min(len(text.encode()) / counts[problem] for problem, text in texts.items())
        mean = sum(counts.values()) / len(counts)
        print(f"{name:28}  mean {mean:,.0f}, largest {counts[largest]:,} ({largest}), bytes per token ≥ {fewest:.2f}")


if __name__ == "__main__":
    main()
