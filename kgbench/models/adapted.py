"""Kernels of installed packages as candidates: a text is written that calls the package, and judged like any other.

Which function of a package does which operator is data, ``adapters/NAME.toml``:

* ``package``: the distribution, whose version results are named with; ``install``: what pip calls it.
* ``first``: text above all functions. Raising NotImplementedError says that nothing is offered on this machine.
* ``calls``: by problem id and overload (``aten/add.Tensor``; ``aten/silu`` where there is one) a function with the
  operator's own parameters, or a table: ``first``, more text above; ``where``, an expression in the parameters that is
  true of calls that are offered; ``call``, one for the result.
* ``aten.call``: a function for every overload that is timed beside an operator of ATen, as ``{operator}``.
* ``issue_first``, ``aten.issue``: the same as plainly as a bug report has it, for ``kgbench show --repro``.
"""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core.details.absence import NotOffered
from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.models.provider import Candidate, ModelError
from kgbench.problem.model import Overload, Problem

FOLDER: Final = Path(__file__).parent / "adapters"


@dataclass(frozen=True)
class Issue:
    """How a package is called in a file for its issue tracker."""

    operator: str
    """``softmax.int`` of ATen, which is correct."""
    first: str
    call: str
    is_function: bool
    """``call`` is a function of the operator's parameters, not an expression in them."""


@dataclass(frozen=True)
class Adapter:
    """One package: its file in ``adapters`` and the version that is installed."""

    name: str
    """The name that ``--model`` takes."""
    package: str
    version: str
    first: str
    calls: Mapping[str, Any]
    aten: str
    """The text for any overload of ATen; empty where only ``calls`` has some."""
    issue_first: str
    issue_aten: str

    @property
    def words(self) -> str:
        return f"{self.package} {self.version}"

    def call_of(self, problem: Problem, overload: Overload) -> Mapping[str, str] | str | None:
        """The call that does an overload; None where the package has nothing."""
        key = f"{problem.id}.{overload.name}" if overload.name else problem.id
        found: Mapping[str, str] | str | None = self.calls.get(key)
        if found is None and self.aten and (target := _operator(overload)):
            return self.aten.format(operator=target)
        return found

    def source(self, problem: Problem) -> str | None:
        """The candidate's text; None where the package does no required overload."""
        calls = {each.name: (each, self.call_of(problem, each)) for each in problem.overloads if each.required}
        if not any(call for _, call in calls.values()):
            return None
        tables = [call for _, call in calls.values() if isinstance(call, Mapping)]
        more = dict.fromkeys(table["first"] for table in tables if "first" in table)
        head = f'"""{problem.id} by {self.words}, as `--model {self.name}` has it judged."""'
        functions = (self._function(overload, call) for overload, call in calls.values())
        return "\n".join((head, "", self.first.strip(), *more, "", *functions))

    def issue(self, problem: Problem, overload: Overload) -> Issue | None:
        """How a bug report calls an overload; None where ATen has no such operator, or the package has nothing."""
        call, operator = self.call_of(problem, overload), _operator(overload)
        if call is None or not operator:
            return None
        if isinstance(call, str):
            text = self.issue_aten.format(operator=operator) if self.issue_aten else call
            return Issue(operator, self.issue_first, text, True)
        first = "\n".join(filter(None, (self.issue_first, call.get("first", "").strip())))
        return Issue(operator, first, call["call"], False)

    def _function(self, overload: Overload, call: Mapping[str, str] | str | None) -> str:
        entry = overload.signature.name
        if isinstance(call, str):
            return f"\n{entry} = {call}"
        lines = [f"\n\ndef {entry}({_parameters(overload)}):"]
        if call is None:
            return "\n".join((*lines, f'    raise NotImplementedError("it has no {entry}")'))
        if "where" in call:
            where = " ".join(call["where"].split())
            lines += [f"    if not ({where}):", f'        raise NotImplementedError("only calls with {_plain(where)}")']
        return "\n".join((*lines, f"    return {call['call']}"))


def adapter_names() -> frozenset[str]:
    """What ``--model`` calls the packages that there are adapters for, installed or not."""
    return frozenset(path.stem.replace("__", ".") for path in FOLDER.glob("*.toml"))


def adapter(name: str) -> Adapter:
    """The adapter of ``--model NAME``. Raises ModelError where its package is not installed."""
    data = tomllib.loads((FOLDER / f"{name.replace('.', '__')}.toml").read_text(encoding="utf-8"))
    package = str(data["package"])
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        words = f"--model {name}: the package {package} is not installed; pip install {data['install']}"
        raise ModelError("KGB580", words) from None
    aten = data.get("aten", {})
    return Adapter(
        name,
        package,
        version,
        str(data["first"]),
        data.get("calls", {}),
        aten.get("call", ""),
        str(data["issue_first"]),
        aten.get("issue", ""),
    )


@dataclass(frozen=True)
class AdaptedProvider:
    """One candidate per problem: the installed package's."""

    adapter: Adapter
    model: str
    """The model's name with the package's version, so that results of two versions count as two models."""
    timed: bool = True
    notes: Sequence[str] = ()
    policy: PolicyMode = PolicyMode.REPORT
    """Packages may leave work to PyTorch; rows say where they do."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        """Without ``--problems``, only problems that the package has something for."""
        if chosen:
            return ids
        of_aten = bool(self.adapter.aten)
        known = {key.partition(".")[0] for key in self.adapter.calls}
        found = [each for each in ids if each in known or (of_aten and each.startswith("aten/"))]
        if not found:
            words = f"--model {self.model}: {self.adapter.words} has nothing for the {len(ids)} selected problems"
            raise ModelError("KGB581", f"{words}; it has kernels for {', '.join(sorted(known)) or 'aten'}")
        return found

    def samples_of(self, problem_id: str) -> int:
        return 1

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        text, package = self.adapter.source(problem), self.adapter.words
        if text is None:
            none = NotOffered(package, "it has no such operator")
            return (Candidate(problem.id, self.model, adapted=package, outcome=Outcome.NOT_OFFERED, detail=none),)
        return (Candidate(problem.id, self.model, source_text=text, adapted=package),)


def provider_for(name: str, argument: str | None, alias: str | None) -> AdaptedProvider:
    """The provider of ``--model NAME`` or ``--model NAME:VERSION``. Raises ModelError for another version."""
    found = adapter(name)
    if argument is not None and argument != found.version:
        words = f"--model {name}:{argument}: {found.words} is installed; write --model {name}"
        raise ModelError("KGB582", f"{words}, or pip install {found.package}=={argument}")
    return AdaptedProvider(found, alias or f"{name}:{found.version}")


def _operator(overload: Overload) -> str:
    """``softmax.int`` of the ATen operator that the overload is timed beside; empty where it is no operator."""
    targets = [each for each in overload.baseline.values() if each.startswith("aten:")]
    name, _, suffix = targets[0].removeprefix("aten:").partition(".") if targets else ("", "", "")
    return f"{name}.{suffix or 'default'}" if name else ""


def _parameters(overload: Overload) -> str:
    words, starred = [], False
    for each in overload.signature.parameters:
        if each.keyword_only and not starred:
            words.append("*")
            starred = True
        default = list(each.default) if isinstance(each.default, tuple) else each.default
        words.append(f"{each.name}={default!r}" if each.has_default else each.name)
    return ", ".join(words)


def _plain(text: str) -> str:
    """A text between double quotes."""
    return text.replace("\\", "\\\\").replace('"', "'")
