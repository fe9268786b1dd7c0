"""A file's content for one overload: its own keys, then the shared ones, then values derived without either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core import syntax
from kgbench.core.errors import ExpressionError, ProblemFileError
from kgbench.core.kinds import Kind
from kgbench.core.names import did_you_mean
from kgbench.problem import blas, schemas
from kgbench.problem.expressions import reference_names
from kgbench.problem.format.keys import Cases
from kgbench.problem.format.leaves import DOTTED, NONE
from kgbench.problem.format.signature import RETURNS_STEP, returns_to_host
from kgbench.problem.model import TIMED_KINDS, CaseTemplate, Fuzz, Signature
from kgbench.problem.yamltree import Items, Keys, Node, node_of

Errors = Iterator[ProblemFileError | ExpressionError]

_VLLM_REFERENCES: Final = "kgbench.baselines.references.vllm"
"""Prefix of the modules that have a plain PyTorch version of each reference."""
_EXACT_KINDS: Final = (Kind.VIEW, Kind.SYNC)
"""Kinds that need no tolerance."""


@dataclass(frozen=True)
class Part:
    """The keys of one overload, including inherited ones, without wrong ones."""

    source: str
    problem: str
    kind: Kind
    name: str
    """Name of the overload; empty for the only one."""
    node: Node
    values: dict[str, Any]
    """Values by key."""
    data: dict[str, Any]
    """By key, its value as written in the file: a Node, Keys or Items."""
    own: frozenset[str]
    """Keys that the overload itself has."""
    written: frozenset[str]
    """Keys that it or the file has, correct or wrong."""
    whole: bool
    """Whether neither it nor the file has an unknown key, which may be a misspelt required one."""

    def at(self, key: str) -> Node:
        return node_of(self.data[key])

    def get(self, key: str) -> Any:
        return self.values.get(key)

    @property
    def required(self) -> bool:
        return bool(self.values.get("required", True))

    @property
    def judged(self) -> bool:
        """Whether it is judged. False if it is only named: not required, and without cases of its own."""
        return self.required or "cases" in self.own

    @property
    def signature(self) -> Signature:
        found: Signature = self.values["entry"]
        return found

    @property
    def cases(self) -> Cases:
        found: Cases = self.values["cases"]
        return found

    def missing(self) -> Errors:
        """Complaints about missing required keys."""
        if not self.whole:
            return
        needed = ["entry"]
        if self.judged:
            needed += ["dtypes", "cases", "arguments", "reference"]
            needed += [] if self.kind in _EXACT_KINDS else ["tolerance"]
            timed = self.kind in TIMED_KINDS and self.required and self.get("baseline") != NONE
            needed += ["baseline"] if timed and not derived_baseline(self) else []
        for key in needed:
            if key not in self.written:
                step = f"add '{key}: …'" + (f", or '{key}: {NONE}'" if key == "baseline" else "")
                yield self.node.complaint("KGB222", f"'{key}' is missing", step)

    def entry_errors(self) -> Errors:
        """Complaints about values that do not fit ``entry``, except arguments."""
        if "entry" not in self.values:
            return
        yield from self._name_errors()
        if not self.judged:
            return
        if returns_to_host(self.signature.returns):
            yield self.at("entry").complaint("KGB240", f"cannot return '{self.signature.returns}'", RETURNS_STEP)
        if "reference" in self.values:
            yield from self._reference_errors()
        yield from self.signature_errors()
        returned = self.get("returns")
        if isinstance(returned, str):
            names = [parameter.name for parameter in self.signature.parameters]
            if returned not in names:
                what = f"entry has no parameter '{returned}'"
                yield self.at("returns").complaint("KGB233", what, did_you_mean(returned, names))
            elif self.signature.returns != "Tensor":
                what = f"entry returns {self.signature.returns}"
                yield self.at("returns").complaint("KGB243", what, "let it return Tensor")

    def signature_errors(self) -> Errors:
        """Complaints about the file's own signature of a library's function."""
        if "signature" not in self.values or "entry" not in self.values:
            return
        node, targets = self.at("signature"), [each for each in self.baseline().values() if _takes_signature(each)]
        if not targets:
            what = "is of a BLAS routine or an operator of vLLM, and baseline names none"
            yield node.complaint("KGB224", what, "remove it, or name one such as cublas:cublasSrot_v2")
        for target in targets:
            try:
                why = self._signature_difference(target)
            except ValueError as error:
                why = str(error)
            if why:
                yield node.complaint("KGB258", why, "docs/problem-format.md, signature, has what to write")
                return

    def _signature_difference(self, target: str) -> str:
        """Where the entry does not fit the signature. Raises ValueError if the signature cannot be parsed."""
        owner, _, name = target.partition(":")
        if owner == "vllm":
            return schemas.entry_difference(schemas.parsed(self.values["signature"]).plain, self.signature.parameters)
        letters = blas.resolved(self.values["signature"], blas.split(name)[0])
        return blas.entry_difference(letters, self.signature.parameters)

    def _name_errors(self) -> Errors:
        wanted = f"{self.problem}_{self.name}" if self.name not in ("", "default") else self.problem
        alone = self.source == "aten" and not self.name and self.signature.name.startswith(f"{self.problem}_")
        if self.signature.name != wanted and not alone:
            what = f"the function is named '{self.signature.name}'"
            yield self.at("entry").complaint("KGB241", what, f"name it '{wanted}', as the problem is")

    def _reference_errors(self) -> Errors:
        text, node = self.values["reference"], self.at("reference")
        names = {parameter.name for parameter in self.signature.parameters}
        if DOTTED.match(text):
            return
        if not text.lstrip().startswith("def "):
            try:
                unknown = sorted(reference_names(text, node.where) - names)
            except ExpressionError as error:
                yield error
                return
            if unknown:
                what = f"entry has no parameter '{unknown[0]}'"
                yield node.complaint("KGB233", what, did_you_mean(unknown[0], sorted(names)))
            return
        missing = names - _taken(text, names)
        if missing:
            what = f"the function does not take '{sorted(missing)[0]}'"
            yield node.complaint("KGB248", what, "it gets every parameter of entry by name")

    # --- cases ---

    def case_nodes(self) -> list[tuple[Node, dict[str, Any]]]:
        """Every case as written, with its values; fuzz is one of them."""
        at = self.cases.at
        lists = {"check": self.cases.check, "opinfo": self.cases.opinfo, "large": self.cases.large}
        found = [each for key, templates in lists.items() for each in _listed(at, key, templates)]
        if self.cases.fuzz is not None:
            fuzz = self.cases.fuzz.made()
            found.append((self.cases.fuzz.node("draw"), CaseTemplate(fuzz.draw, 0, fuzz.call).written))
        if self.cases.bench is not None:
            for key in self.cases.bench.at:
                found += _listed(self.cases.bench.at, key, getattr(self.cases.bench, key))
        return found

    def bench(self) -> dict[str, tuple[CaseTemplate, ...]]:
        bench = self.cases.bench
        return {} if bench is None else {name: tuple(getattr(bench, key)) for name, key in bench.presets().items()}

    def fuzz(self) -> Fuzz | None:
        return None if self.cases.fuzz is None else self.cases.fuzz.made()

    # --- what follows from source and name ---

    def baseline(self) -> dict[str, str]:
        said = self.get("baseline")
        if said == NONE:
            return {}
        targets = {} if said is None else {key: target for key in said.at if (target := getattr(said, key))}
        return self._with_signature(targets or derived_baseline(self))

    def _with_signature(self, targets: dict[str, str]) -> dict[str, str]:
        """The targets; those that need it with the file's own signature."""
        own = " ".join((self.get("signature") or "").split())
        return {key: f"{each}({own})" if own and _takes_signature(each) else each for key, each in targets.items()}

    def fallback(self) -> str | None:
        said, reference = self.get("fallback"), self.get("reference")
        if said is not None:
            return None if said == NONE else str(said)
        ours = self.source == "vllm" and reference is not None and reference.startswith(_VLLM_REFERENCES)
        return f"{reference}_plain" if ours else None


def _takes_signature(target: str) -> bool:
    return target.startswith("vllm:") or blas.is_routine(target)


def _taken(text: str, names: set[str]) -> set[str]:
    """Those of the names that the function ``def reference(…)`` has as parameters."""
    taken = syntax.parse(text).body[0].args
    return names if taken.kwarg else {argument.arg for argument in (*taken.args, *taken.kwonlyargs)}


def _listed(at: Keys, key: str, templates: Iterable[CaseTemplate]) -> list[tuple[Node, dict[str, Any]]]:
    nodes: Items = at.get(key, Items())
    return [(node_of(datum), template.written) for datum, template in zip(nodes, templates, strict=True)]


def derived_baseline(part: Part) -> dict[str, str]:
    """The library call with the problem's name; for ATen the overload itself."""
    if part.source == "aten":
        target = f"aten:{part.problem}" if part.name in ("", "default") else f"aten:{part.problem}.{part.name}"
        return {"cuda": target, "cpu": target}
    if part.kind not in TIMED_KINDS:
        return {}
    known = {
        "vllm": {"cuda": f"vllm:{part.problem}"},
        "cublas": {"cuda": f"cublas:{part.problem}", "cpu": f"openblas:{part.problem}"},
    }
    return known.get(part.source, {})
