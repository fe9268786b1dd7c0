"""How long prompts are in tokens of published tokenizers, beside kgbench's estimate, which knows none of them.

    python -m benchmarks.prompt_tokens [--language any] [--shots 1]

Needs ctok (a reconstruction of Claude's counts; Python 3.12) and bpe-openai, in an environment of their own. Prints per
tokenizer mean and largest, and the fewest bytes for one token: kgbench/prompts/tokens.py must stay below all of them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import click

from kgbench.problem.registry import Registry, load_problem
from kgbench.prompts.facts import torch_facts
from kgbench.prompts.render import LANGUAGES, PromptOptions, prompt_for
from kgbench.prompts.tokens import estimated_tokens


def _tokenizers() -> dict[str, Callable[[str], int]]:
    ctok, openai = importlib.import_module("ctok"), importlib.import_module("bpe_openai")
    encoding = openai.get_encoding("o200k_base")
    return {
        "Claude 4.8 and newer (ctok)": lambda text: int(ctok.token_count(text, "4.8")),
        "Claude 3 to 4.6 (ctok)": lambda text: int(ctok.token_count(text, "3.0")),
        "GPT (o200k_base)": lambda text: len(encoding.encode(text)),
        "estimate": estimated_tokens,
    }


@click.command()
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="triton")
@click.option("--shots", type=int, default=0)
def main(language: str, shots: int) -> None:
    problems = [load_problem(path) for path in Registry().paths.values()]
    facts = torch_facts(problems)
    if facts.missing:
        print(f"note: {facts.missing}", file=sys.stderr)
    options = PromptOptions(language=language, shots=shots)
    texts = {problem.id: prompt_for(problem, options, facts).text for problem in problems}
    print(f"{len(texts)} prompts, {sum(map(len, texts.values())) / len(texts):,.0f} characters on average")
    for name, count in _tokenizers().items():
        counts = {problem: count(text) for problem, text in texts.items()}
        largest = max(counts, key=lambda problem: counts[problem])
        fewest = min(len(text.encode()) / counts[problem] for problem, text in texts.items())
        mean = sum(counts.values()) / len(counts)
        print(f"{name:28}  mean {mean:,.0f}, largest {counts[largest]:,} ({largest}), bytes per token ≥ {fewest:.2f}")


if __name__ == "__main__":
    main()
