"""Where candidates come from: providers, found by name, one file each. What becomes of a candidate is the harness's.

A provider is a module of ``providers/``. It has a ``SUMMARY`` (one line, shown where the choice is explained) and a
function ``provider(argument: str | None) -> Provider``; ``argument`` is what follows the colon in
``--model NAME:ARGUMENT``. Adding one is adding a file.
"""

from __future__ import annotations

import ast
import copy
import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from kgbench.core import syntax
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Generation
from kgbench.llm.aliases import aliases, resolve
from kgbench.models import providers
from kgbench.problem.model import Problem

if TYPE_CHECKING:
    from kgbench.llm.conversation import ModelClient

MAX_SOURCE_BYTES: Final = 1 << 20
"""Bytes of a candidate's text at most; a longer file counts as no code."""


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
    path: Path | None = None
    """File that the code was read from, or that was looked for."""
    outcome: Outcome | None = None
    """Settled before anything runs: ``no candidate`` or ``no code``."""
    reason: str = ""
    round: int = 0
    """Which of a model's answers in one sample, from 0."""
    generation: Generation | None = None
    """How a model wrote it; None where nobody was asked."""


class Provider(Protocol):
    """Hands out the candidates of one model."""

    @property
    def model(self) -> str:
        """The name under which results are stored."""

    @property
    def timed(self) -> bool:
        """Whether the clock runs: not where a speed would mean nothing."""

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


def provider_names() -> tuple[str, ...]:
    """The names that ``--model`` knows."""
    names = (module.name for module in pkgutil.iter_modules(providers.__path__))
    return tuple(sorted(name.replace("_", "-") for name in names))


def provider_summaries() -> dict[str, str]:
    """One line per provider, read from its text so that explaining the choice imports none of them."""
    return {name: _summary(Path(providers.__path__[0]) / f"{_module(name)}.py") for name in provider_names()}


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
    module = importlib.import_module(f"{providers.__name__}.{_module(name)}")
    provider: Provider | ModelClient = module.provider(argument or None)
    if meant != spec and name != "dir":
        # Results are stored under the name that was typed; which model answered stands in each of them.
        provider = copy.copy(provider)
        object.__setattr__(provider, "model", spec)
    return provider


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
        return Candidate(
            problem_id, model, path=path, outcome=Outcome.NO_CANDIDATE, reason=f"there is no file {path.name}"
        )
    except (OSError, UnicodeDecodeError) as error:
        return Candidate(problem_id, model, path=path, outcome=Outcome.NO_CODE, reason=f"cannot be read: {error}")
    reason = ""
    if len(data) > MAX_SOURCE_BYTES:
        reason = f"the file has {len(data)} bytes, more than {MAX_SOURCE_BYTES}"
    elif not text.strip():
        reason = "the file is empty"
    if reason:
        return Candidate(problem_id, model, path=path, outcome=Outcome.NO_CODE, reason=reason)
    return Candidate(problem_id, model, source_text=text, path=path)


def _module(name: str) -> str:
    return name.replace("-", "_")


def _summary(path: Path) -> str:
    for node in syntax.parse(path.read_text()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="SUMMARY")], value=ast.Constant(value=str(text))):
                return text
            case ast.AnnAssign(target=ast.Name(id="SUMMARY"), value=ast.Constant(value=str(text))):
                return text
    return path.stem
