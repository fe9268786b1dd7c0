"""``kgbench prompt``: exactly what a model would be sent for a problem, or how long the prompts of many are."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgbench.cli.completion import complete_model, complete_problem, complete_source
from kgbench.cli.options import PROMPT_OPTIONS, problem_dir_option
from kgbench.core.errors import UsageError

if TYPE_CHECKING:
    from kgbench.llm.conversation import Prompt
    from kgbench.prompts.render import PromptOptions

EPILOG = """
\b
Examples:
  what any model is asked
    kgbench prompt aten/softmax
  in CUDA C++, with an example, for a GPU that is not here
    kgbench prompt cublasSgemm_v2 --language cuda --shots 1 --target-gpu H200
  what an agent gets
    kgbench prompt vllm/rms_norm --model 'exec:sh my_agent.sh'
  how long all prompts are
    kgbench prompt --sizes

Exit codes: 0 done, 2 wrong command line.
"""


def _prompt_options(command: Any) -> Any:
    for option in reversed(PROMPT_OPTIONS):
        command = option(command)
    return command


@click.command(
    epilog=EPILOG, short_help="Show exactly what a model is sent.", context_settings={"max_content_width": 110}
)
@click.argument("problem", metavar="[ID]", required=False, shell_complete=complete_problem)
@click.option("--model", metavar="PROVIDER", shell_complete=complete_model,
              help="The model; only agents (exec:COMMAND) get another prompt. Needs no key.")  # fmt: skip
@_prompt_options
@problem_dir_option
@click.option("--suite", metavar="kernelbench:PATH", help="The problems of a checkout of KernelBench.")
@click.option("--sizes", is_flag=True, help="One line per problem: characters, estimated tokens, hash.")
@click.option("--source", "sources", multiple=True, metavar="NAME", shell_complete=complete_source,
              help="With --sizes: aten, vllm, cublas, a comma list, or all. Repeatable.  [default: all]")  # fmt: skip
@click.option("--problems", "globs", multiple=True, metavar="GLOB", shell_complete=complete_problem,
              help="With --sizes: only problems whose id matches. Repeatable.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def prompt(
    problem: str | None,
    model: str | None,
    language: str,
    shots: int,
    bench_shapes: bool,
    target_gpu: str,
    problem_dirs: tuple[Path, ...],
    suite: str | None,
    sizes: bool,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print what `kgbench run` with the same options would send for a problem: the shared part, then the turns.

    The text goes to standard output; its length and hash, by which results name it, to standard error. Nothing is
    sent, and no key, SDK or GPU is needed; with torch installed, prompts of ATen have its schema and documentation.
    """
    from kgbench.problem.kernelbench import checkout
    from kgbench.problem.registry import Registry, problem_folders
    from kgbench.prompts.facts import torch_facts
    from kgbench.prompts.render import PromptOptions, prompt_for
    from kgbench.prompts.targets import target_gpu as gpu_for

    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # an arrow must not end it in an ASCII locale
    registry = Registry(problem_folders(problem_dirs)) if suite is None else checkout(suite)
    named = [problem] if problem else []
    if not sizes and (len(named) != 1 or sources or globs):
        raise UsageError(
            "KGB523",
            "name one problem, for example kgbench prompt aten/softmax; kgbench prompt --sizes lists how long the "
            "prompts of many are",
        )
    chosen = registry.select(sources, (*globs, *named))
    options = PromptOptions(language, shots, bench_shapes, gpu_for(target_gpu), _is_agent(model))
    loaded = registry.load(chosen)
    facts = torch_facts(loaded)
    prompts = {each.id: prompt_for(each, options, facts) for each in loaded}
    if sizes:
        _print_sizes(prompts, as_json)
    else:
        _print_one(*prompts.popitem(), options, as_json)
    if facts.missing:
        click.echo(f"note: {facts.missing}", err=True)


def _is_agent(model: str | None) -> bool:
    """Whether prompts go to an agent with a working folder. Raises UsageError for providers that are asked nothing."""
    if model is None:
        return False
    from kgbench.llm.conversation import ModelClient
    from kgbench.models.provider import provider_of

    found = provider_of(model)
    if not isinstance(found, ModelClient):
        raise UsageError("KGB524", f"--model {model} already has its kernels and is asked nothing; leave --model out")
    return found.is_agent


def _print_one(problem: str, shown: Prompt, options: PromptOptions, as_json: bool) -> None:
    from kgbench.prompts.tokens import estimated_tokens
    from kgbench.store.encoding import json_text

    target = options.target
    if as_json:
        said = {
            "problem": problem,
            **_size(shown),
            "language": options.language,
            "shots": options.shots,
            "target_gpu": asdict(target) if target else None,
            **asdict(shown),
        }
        click.echo(json_text(said, indent=2))
        return
    for role, text in (("system", shown.system), *((turn.role, turn.text) for turn in shown.turns)):
        click.echo(f"--- {role} ---\n{text}")
    shared = estimated_tokens(shown.system)
    gpu = target.name if target else "any NVIDIA GPU (--target-gpu names one)"
    click.echo(f"about {estimated_tokens(shown.text):,} tokens, {shared:,} of them shared; for {gpu}", err=True)
    click.echo(f"sha256 {shown.sha256}", err=True)


def _print_sizes(prompts: dict[str, Prompt], as_json: bool) -> None:
    from kgbench.store.encoding import json_text

    rows = [{"problem": problem, **_size(each)} for problem, each in prompts.items()]
    if as_json:
        click.echo(json_text(rows, indent=2))
        return
    width = max(len(row["problem"]) for row in rows)
    for row in rows:
        click.echo(f"{row['problem']:{width}}  {row['characters']:7,}  {row['tokens']:6,}  {row['sha256'][:12]}")
    tokens = [row["tokens"] for row in rows]
    largest = max(rows, key=lambda row: row["tokens"])
    click.echo(
        f"{len(rows)} prompts, about {sum(tokens):,} tokens: mean {sum(tokens) / len(tokens):,.0f}, largest "
        f"{largest['tokens']:,} ({largest['problem']}); columns: characters, estimated tokens, sha256",
        err=True,
    )


def _size(shown: Prompt) -> dict[str, Any]:
    from kgbench.prompts.tokens import estimated_tokens

    return {"characters": len(shown.text), "tokens": estimated_tokens(shown.text), "sha256": shown.sha256}
