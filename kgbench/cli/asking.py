"""Options of the commands that ask a model, what they say before the first request, and whom ``--model`` means."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kgbench.cli.options import PROMPT_OPTIONS
from kgbench.core.errors import UsageError, numbered
from kgbench.core.user_files import UserFile
from kgbench.llm.aliases import FILE as ALIASES
from kgbench.llm.prices import FILE as PRICES

if TYPE_CHECKING:
    from kgbench.llm.conversation import ModelClient
    from kgbench.models.generation import Chain, ModelProvider
    from kgbench.models.provider import Provider
    from kgbench.problem.model import Problem
    from kgbench.store.writer import RunStore

ASK_ABOVE_USD: Final = 5.0
"""Dollars above which a person at a terminal is asked before the first request."""
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _use(file: UserFile, path: Path | None) -> None:
    """Set the environment variable from an option, for all processes that this command starts."""
    if path is not None:
        os.environ[file.variable] = str(path.resolve())


_OPTIONS: Final = (
    click.option("--samples", type=click.IntRange(1, 1000), default=1, show_default=True, metavar="K",
                 help="Independent answers to each problem, for pass@k and fast_p@k."),
    click.option("--rounds", type=click.IntRange(1, 100), default=1, show_default=True, metavar="R",
                 help="Answers in each sample; from the second on the model is told what became of its last kernel. "
                      "The best one counts."),
    *PROMPT_OPTIONS,
    click.option("--temperature", type=click.FloatRange(0, 2), metavar="T",
                 help="How the model samples.  [default: the provider's own]"),
    click.option("--max-tokens", type=click.IntRange(min=256), default=16_384, show_default=True, metavar="N",
                 help="Most tokens of one answer, thinking included."),
    click.option("--thinking", type=click.Choice(("off", "low", "medium", "high")),
                 help="How much the model thinks before it answers.  [default: the provider's own]"),
    click.option("--concurrency", type=click.IntRange(1, 256), default=8, show_default=True, metavar="N",
                 help="Requests in flight at once."),
    click.option("--reply-timeout", "reply_timeout_s", type=click.FloatRange(min=1), default=600.0,
                 show_default=True, metavar="SECONDS", help="Time limit of one reply, or of an agent's whole work."),
    click.option("--budget-usd", type=click.FloatRange(min=0), metavar="USD",
                 help="Stop asking when the next request could exceed the budget; the replies so far are evaluated."),
    click.option("--batch", is_flag=True, help="Use the provider's batch interface: half the price, slower."),
    click.option("--agent-checks", type=click.IntRange(0, 10_000), default=50, show_default=True, metavar="N",
                 help="How often an agent (exec:COMMAND) may try a kernel on one problem."),
    click.option("--agent-sees", multiple=True, type=click.Path(exists=True, path_type=Path), metavar="PATH",
                 help="A file or folder of your home that an agent may see, such as its credentials. Repeatable."),
    click.option("--aliases", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                 expose_value=False, is_eager=True, callback=lambda ctx, option, path: _use(ALIASES, path),
                 help="Your short names for models (docs/models.md), in place of $KGBENCH_ALIASES."),
    click.option("--prices", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                 expose_value=False, is_eager=True, callback=lambda ctx, option, path: _use(PRICES, path),
                 help="Your prices of tokens (docs/models.md), in place of $KGBENCH_PRICES."),
    click.option("--yes", is_flag=True, help=f"Do not ask before more than ${ASK_ABOVE_USD:.0f} may be spent."),
    click.option("--dry-run", is_flag=True, help="Say what would be asked and what it can cost; no key is needed."),
)  # fmt: skip
_NOT_KEPT: Final = ("yes", "dry_run")
"""Options that are not stored with a run; all others are."""
RARELY_GIVEN: Final = (
    "shots", "bench_shapes", "target_gpu", "thinking", "concurrency", "reply_timeout_s", "batch", "agent_checks",
    "agent_sees", "aliases", "prices",
)  # fmt: skip
"""Options that ``kgbench run --help`` leaves out and ``kgbench generate --help`` has."""
_MAY_DIFFER: Final = ("concurrency", "reply_timeout_s", "budget_usd", "agent_sees")
"""Options that may differ when a run is resumed: they do not change what is asked."""


class ModelOption(click.Option):
    """The option ``--model``. Its help lists the providers, those of installed packages too, when it is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from kgbench.models.provider import provider_forms

        self.help = (
            f"Who answers: {', '.join(provider_forms().values())}, a short name such as claude or gpt "
            "(docs/models.md), or the path of one .py file. `kgbench run` alone says what each is."
        )
        return super().get_help_record(ctx)


def asking_options(command: _Command) -> _Command:
    """All options that only matter where a model is asked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asking_words(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as JSON-ready data, for run.json."""
    kept = {name: value for name, value in given.items() if name not in _NOT_KEPT}
    return {**kept, "agent_sees": [str(path.absolute()) for path in given["agent_sees"]]}


def resumed_words(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a run that is continued: the stored ones, with those that may differ taken from the command line.

    Raises UsageError where the command line asks for other questions than the run was started with.
    """
    words = dict(stored)
    for name in filter(_was_given, given):
        if name not in _MAY_DIFFER and given[name] != stored.get(name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                "KGB418",
                f"the run was started with {option} {stored.get(name)}; leave {option} out, or start a new run without "
                "--resume",
            )
        words[name] = given[name]
    return words


def model_of(spec: str, words: Mapping[str, Any]) -> Provider | ModelClient:
    """The model or provider that ``--model`` names. Raises ModelError; UsageError where finished kernels come with an
    option for asking.
    """
    from kgbench.llm.conversation import ModelClient
    from kgbench.models.provider import provider_of

    found = provider_of(spec)
    if isinstance(found, ModelClient):
        return found
    given = [name for name in words if _was_given(name)]
    if given:
        option = "--" + given[0].removesuffix("_s").replace("_", "-")
        raise UsageError("KGB561", f"{option} is for models that are asked, and --model {spec} already has its kernels")
    return found


def asked_provider(
    asker: ModelClient, words: Mapping[str, Any], problems: Sequence[Problem], hidden: Sequence[Path | str]
) -> ModelProvider:
    """The model with everything that its prompts need. Raises UsageError, ModelError."""
    from kgbench.llm.conversation import Sampling
    from kgbench.models.generation import GenerationConfig, ModelProvider
    from kgbench.prompts.facts import torch_facts
    from kgbench.prompts.render import PromptOptions
    from kgbench.prompts.targets import target_gpu

    recorded = asker.recorded()
    if recorded is not None:
        # Nobody is asked now, at whatever price and by whatever way it was then.
        samples, rounds = recorded
        words = {**words, "samples": samples, "rounds": rounds, "batch": False, "budget_usd": None}
    if words["batch"] and not asker.batches:
        raise UsageError("KGB562", f"--batch: {asker.model} has no batch interface; leave it out")
    if words["batch"] and words["rounds"] > 1:
        raise UsageError(
            "KGB563", "--batch asks everything at once, and --rounds need a verdict between: give one of them"
        )
    sampling = Sampling(words["temperature"], words["max_tokens"], words["thinking"], words["reply_timeout_s"])
    target = target_gpu(words["target_gpu"])
    options = PromptOptions(words["language"], words["shots"], words["bench_shapes"], target, asker.is_agent)
    asking = GenerationConfig(
        words["samples"], words["rounds"], sampling, words["concurrency"], words["budget_usd"], words["batch"],
        options, words["agent_checks"], tuple(map(Path, words["agent_sees"])), tuple(map(Path, hidden)),
    )  # fmt: skip
    if recorded is not None:
        return ModelProvider(asker, asking)
    facts = torch_facts(problems)
    notes = (f"the prompts go without PyTorch's own documentation: {facts.missing}",) if facts.missing else ()
    provider = ModelProvider(asker, asking, facts, notes)
    if asking.budget_usd is not None and provider.price is None:
        raise UsageError(
            "KGB564",
            f"--budget-usd: the price of {asker.model_id} is unknown; add it to a price file (docs/models.md), or "
            "leave the option out",
        )
    return provider


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The cost of the questions that are still to be asked."""

    requests: int
    input_tokens: int
    output_tokens: int
    """Tokens that replies have at most."""
    usd: float | None
    """Most dollars; None where the price is unknown, 0 where nothing is paid."""

    def words(self, provider: ModelProvider) -> str:
        asker, budget = provider.asker, provider.asking.budget_usd
        name = asker.model_id if asker.model_id == asker.model else f"{asker.model_id} ({asker.model})"
        cost = "the price is unknown" if self.usd is None else f"≤ ${self.usd:.2f}"
        if not asker.endpoint:
            cost = "no cost that kgbench knows of"
        cap = f", --budget-usd {budget:g} caps it" if budget is not None else "; --budget-usd caps it"
        requests = "1 request" if self.requests == 1 else f"{self.requests:,} requests"
        if provider.asking.options.agent:
            return f"{requests} to {name}: what an agent spends, kgbench does not know"
        return (
            f"{requests} to {name}, about {self.input_tokens:,} tokens in and at most {self.output_tokens:,} out: "
            f"{cost}{cap if asker.endpoint else ''}"
        )


def forecast(
    provider: ModelProvider, problems: Sequence[Problem], chains: Sequence[Chain], store: RunStore | None
) -> Forecast:
    """The forecast for questions without a reply. A further round costs its prompt and the longest kernel before it."""
    from kgbench.llm import prices
    from kgbench.prompts.tokens import estimated_tokens

    asking, most = provider.asking, provider.asking.sampling.max_tokens
    requests = tokens = 0
    lengths = {problem.id: estimated_tokens(provider.prompt(problem).text) for problem in problems}
    for problem, sample in chains:
        for number in range(asking.rounds):
            if store is None or store.read_reply(problem, sample, number) is None:
                requests += 1
                tokens += lengths[problem] + (most if number else 0)
    usd = prices.ceiling_usd(provider.price, tokens, most, requests, asking.batch)
    return Forecast(requests, tokens, requests * most, usd)


def before_asking(
    provider: ModelProvider,
    problems: Sequence[Problem],
    chains: Sequence[Chain],
    store: RunStore | None,
    *,
    yes: bool,
) -> Forecast:
    """Print what will be asked; on a terminal a person may stop it where it can be expensive. Raises Abort."""
    for note in provider.notes:
        click.echo(note, err=True)
    coming = forecast(provider, problems, chains, store)
    click.echo(coming.words(provider), err=True)
    budget = provider.asking.budget_usd
    most = coming.usd if budget is None else min(coming.usd or 0.0, budget)
    if most is not None and most > ASK_ABOVE_USD and not yes and sys.stdin.isatty():
        click.confirm("Go on?", abort=True, err=True)
    return coming


def say_left(words: str) -> None:
    """Print how many questions got no reply."""
    click.echo(f"kgbench: {numbered('KGB613', words)}", err=True)


def _was_given(name: str) -> bool:
    from click.core import ParameterSource

    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
