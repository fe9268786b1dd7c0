"""Where candidates come from: providers, found by name. What becomes of a candidate is the harness's.

A provider is a module: one of ``providers/``, where adding one is adding a file, or one that an installed package names
with an entry point ``kgbench.providers`` (docs/extending.md). ``ProviderModule`` says what it has.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from kgbench.core import syntax
from kgbench.core.details.absence import CodeProblem, NoCandidate, NoCode, NotOffered
from kgbench.core.details.sentences import words_of
from kgbench.core.errors import KgbenchError, UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.plugins import PROVIDERS, Plugin, leave_out, plugins
from kgbench.core.types import Generation
from kgbench.llm.aliases import aliases, resolve
from kgbench.llm.conversation import MAX_SOURCE_BYTES, ModelClient
from kgbench.models import providers
from kgbench.problem.model import Problem


class ModelError(UsageError):
    """The command line asks for candidates in a way that cannot be met; exit code 2."""


@dataclass(frozen=True)
class Candidate:
    """One answer to one problem, before anything is known about it."""

    problem_id: str
    model: str
    sample: int = 0
    source_text: str | None = None
    """The code as received; None where there is none, or where ``trusted`` names what runs instead."""
    trusted: str | None = None
    """``baseline`` or ``reference``: the project's own code takes the candidate's place. Never set by a candidate."""
    adapted: str = ""
    """The installed package, with its version, whose kernel the text calls. Never set by a candidate."""
    path: Path | None = None
    """File that the code was read from, or that was looked for."""
    outcome: Outcome | None = None
    """The outcome where it is known before anything runs: ``no candidate``, ``no code`` or ``not offered``."""
    detail: NoCode | NoCandidate | NotOffered | None = None
    """Why there is nothing to judge, where ``outcome`` is settled."""
    round: int = 0
    """Which of a model's answers in one sample, from 0."""
    generation: Generation | None = None
    """How a model wrote it; None where nobody was asked."""

    @property
    def reason(self) -> str:
        """Why there is nothing to judge, for people."""
        return "" if self.detail is None else words_of(self.detail)


@runtime_checkable
class Provider(Protocol):
    """Hands out the candidates of one model."""

    @property
    def model(self) -> str:
        """The name under which results are stored."""

    @property
    def timed(self) -> bool:
        """Whether kernels are timed: not where a speed would mean nothing."""

    @property
    def notes(self) -> Sequence[str]:
        """Lines to show before a run about what ``narrow`` found."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        """Ids of the problems this provider is for, of those selected; ``chosen``: they were named with --problems.

        Raises ModelError when none is. Every problem returned stays in the denominator.
        """

    def samples_of(self, problem_id: str) -> int:
        """How many candidates it has for a problem, at least one."""

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        """``samples_of`` candidates: a missing one is a candidate whose outcome is ``no candidate``."""


class ProviderModule(Protocol):
    """What the module of a provider has."""

    FORM: str
    """How ``--model`` names it: ``anthropic:MODEL``."""
    SUMMARY: str
    """What it is, in a line, shown where the choice is explained."""

    def provider(self, argument: str | None, alias: str | None = None) -> Provider | ModelClient:
        """The provider of finished kernels, or the model client, that ``--model NAME:ARGUMENT`` means.

        ``argument`` is what follows the colon. ``alias``: the short name that was typed, under which results are
        stored. Raises ModelError, without a request to anybody, where the argument means nothing.
        """


def provider_names() -> tuple[str, ...]:
    """The names that ``--model`` knows."""
    return tuple(sorted((*_own_names(), *_installed())))


def provider_forms() -> dict[str, str]:
    """How ``--model`` names each provider: ``anthropic:MODEL``."""
    return {name: form for name, (form, _) in _described().items()}


def provider_summaries() -> dict[str, str]:
    """A line per provider: how ``--model`` names it, and what it is."""
    return {name: f"{form:15} {summary}" for name, (form, summary) in _described().items()}


def _described() -> dict[str, tuple[str, str]]:
    """FORM and SUMMARY by name. Of our own they are read from the text, so that explaining them imports none.

    A package that is broken is left out with a warning.
    """
    found = {name: _own_summary(Path(providers.__path__[0]) / f"{_module(name)}.py") for name in _own_names()}
    for name, plugin in _installed().items():
        try:
            module = _imported(name, plugin)
        except ModelError as error:
            leave_out(plugin, str(error))
            continue
        found[name] = module.FORM, module.SUMMARY
    return dict(sorted(found.items()))


def provider_of(spec: str) -> Provider | ModelClient:
    """The provider that ``--model`` names: ``examples``, ``dir:PATH``, a path to one ``.py`` file, or an alias.

    Raises ModelError with the list of what there is.
    """
    names = provider_names()
    meant = resolve(spec, names)
    name, colon, argument = meant.partition(":")
    if not colon and meant.endswith(".py"):
        name, argument = "dir", meant
    if name not in names:
        known = [*provider_summaries().values(), *(f"{short:15} {long}" for short, long in aliases().items())]
        listed = "\n".join(f"  {line}" for line in known)
        raise ModelError("KGB502", f"--model {spec}: there is no provider {name!r}. There is:\n{listed}")
    # Results are stored under the name that was typed; which model answered stands in each of them.
    alias = spec if meant != spec else None
    plugin = _installed().get(name)
    if plugin is None:
        own: ProviderModule = importlib.import_module(f"{providers.__name__}.{_module(name)}")
        return own.provider(argument or None, alias)
    return _of_package(name, plugin, argument or None, alias)


def _of_package(name: str, plugin: Plugin, argument: str | None, alias: str | None) -> Provider | ModelClient:
    """As ``provider_of``, of an installed package, whose mistakes are told from a user's."""
    module = _imported(name, plugin)
    try:
        found = module.provider(argument, alias)
    except KgbenchError:
        raise
    except Exception as error:  # whatever somebody else's code raises
        words = f"provider() raised {type(error).__name__}: {error}"
        raise ModelError("KGB510", f"--model {name}: {plugin.package}: {words}") from error
    if not isinstance(found, (ModelClient, Provider)):
        words = f"provider() returned a {type(found).__name__}, which is neither a ModelClient nor a Provider"
        raise ModelError("KGB510", f"--model {name}: {plugin.package}: {words}")
    return found


def _imported(name: str, plugin: Plugin) -> ProviderModule:
    """The module that an entry point names. Raises ModelError where it is none of a provider."""
    try:
        module: Any = importlib.import_module(plugin.value.partition(":")[0].strip())
        lacking = [each for each in ("FORM", "SUMMARY", "provider") if not hasattr(module, each)]
    except Exception as error:  # whatever importing somebody else's code raises
        words = f"importing {plugin.value} raises {type(error).__name__}: {error}"
        raise ModelError("KGB510", f"provider {name} of {plugin.package}: {words}") from error
    if lacking:
        raise ModelError("KGB510", f"provider {name} of {plugin.package}: {plugin.value} has no {lacking[0]}")
    found: ProviderModule = module
    return found


def _own_names() -> list[str]:
    # ``torch__compile`` is torch.compile.
    return [module.name.replace("__", ".").replace("_", "-") for module in pkgutil.iter_modules(providers.__path__)]


def _installed() -> dict[str, Plugin]:
    """Entry points of installed packages, by name."""
    return plugins(PROVIDERS, _own_names())


def takes_no_argument(name: str, argument: str | None) -> None:
    """Raises ModelError when a provider without arguments was given one."""
    if argument is not None:
        raise ModelError(
            "KGB503", f"--model {name}:{argument}: {name} takes nothing after the colon; write --model {name}"
        )


def candidate_from_file(problem_id: str, model: str, path: Path) -> Candidate:
    """The candidate in a file; what is missing or cannot be code settles its outcome at once."""
    try:
        data = path.read_bytes()
        text = data.decode()
    except (FileNotFoundError, NotADirectoryError):
        none = NoCandidate(f"there is no file {path.name}")
        return Candidate(problem_id, model, path=path, outcome=Outcome.NO_CANDIDATE, detail=none)
    except (OSError, UnicodeDecodeError) as error:
        unreadable = NoCode(CodeProblem.UNREADABLE, f"cannot be read: {error}")
        return Candidate(problem_id, model, path=path, outcome=Outcome.NO_CODE, detail=unreadable)
    no_code = None
    if len(data) > MAX_SOURCE_BYTES:
        no_code = NoCode(CodeProblem.TOO_LONG, f"the file has {len(data)} bytes, more than {MAX_SOURCE_BYTES}")
    elif not text.strip():
        no_code = NoCode(CodeProblem.EMPTY, "the file is empty")
    if no_code is not None:
        return Candidate(problem_id, model, path=path, outcome=Outcome.NO_CODE, detail=no_code)
    return Candidate(problem_id, model, source_text=text, path=path)


def _module(name: str) -> str:
    return name.replace("-", "_").replace(".", "__")


def _own_summary(path: Path) -> tuple[str, str]:
    """FORM and SUMMARY of one of our modules, from its text."""
    found = {}
    for node in syntax.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id="FORM" | "SUMMARY" as name), value=ast.Constant(value=str(text))):
                found[name] = text
    return found["FORM"], found["SUMMARY"]
