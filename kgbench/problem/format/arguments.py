"""The arguments of one overload: the file's text for each parameter, and the default for parameters without any."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kgbench.core.errors import ProblemFileError
from kgbench.core.names import did_you_mean
from kgbench.problem.expressions import Expr
from kgbench.problem.format.body import Part
from kgbench.problem.format.keys import Scalar, Tensor
from kgbench.problem.model import (
    TENSOR_LISTS,
    Access,
    Argument,
    Draw,
    Parameter,
    ScalarArgument,
    TensorArgument,
    plain_type,
    takes_tensors,
)
from kgbench.problem.yamltree import Node, node_of


@dataclass
class Arguments:
    """Reads the arguments; ``found`` has one per parameter if ``errors`` stays empty."""

    part: Part
    elsewhere: Collection[str]
    """Parameters of all overloads of the file, which shared keys may name."""
    found: list[Argument] = field(default_factory=list)
    errors: list[ProblemFileError] = field(default_factory=list)

    def read(self) -> None:
        said: dict[str, Any] = self.part.values["arguments"]
        names = [parameter.name for parameter in self.part.signature.parameters]
        known = names if "arguments" in self.part.own else self.elsewhere
        for name in said:
            if name not in known:
                self.errors.append(
                    self._at(name).complaint("KGB233", f"entry has no parameter '{name}'", did_you_mean(name, names))
                )
        sets = self._value_sets(said, names)
        variables = self._own_variables()
        for parameter in self.part.signature.parameters:
            if parameter.name in said:
                self.found.append(self._argument(parameter, said[parameter.name], sets.get(parameter.name, {})))
            else:
                self.found.append(self._absent(parameter, variables))

    def _at(self, name: str) -> Node:
        return node_of(self.part.data["arguments"][name])

    # --- value sets ---

    def _value_sets(self, said: dict[str, Any], names: Collection[str]) -> dict[str, dict[str, Draw]]:
        """Draws by argument and value set, from the key for several arguments together."""
        sets: dict[str, dict[str, Draw]] = {}
        known = names if "value_sets" in self.part.own else self.elsewhere
        for name, draws in (self.part.get("value_sets") or {}).items():
            at = self.part.data["value_sets"][name]
            if name == "default":
                self.errors.append(
                    node_of(at).complaint("KGB224", "is drawn as each argument's own 'draw' says", "remove it")
                )
            for argument, draw in draws.items():
                self._check_set(node_of(at[argument]), name, said.get(argument), known)
                sets.setdefault(argument, {})[name] = draw
        self._check_repeated(said, names)
        return sets

    def _check_set(self, node: Node, name: str, argument: Any, known: Collection[str]) -> None:
        if node.name not in known:
            self.errors.append(
                node.complaint("KGB233", f"entry has no parameter '{node.name}'", did_you_mean(node.name, known))
            )
        elif isinstance(argument, Scalar) or (isinstance(argument, Tensor) and argument.draw is None):
            self.errors.append(node.complaint("KGB224", f"no values are drawn for '{node.name}'", "remove it"))
        elif isinstance(argument, Tensor) and name in (argument.draw or {}):
            self.errors.append(
                node.complaint("KGB224", f"'{name}' stands under arguments.{node.name}.draw too", "keep one")
            )

    def _check_repeated(self, said: dict[str, Any], names: Collection[str]) -> None:
        """Check that each value set of several arguments is written in one place, so that a mistake in one is seen."""
        first: dict[str, str] = {}
        for argument, keys in said.items():
            draws = keys.draw if isinstance(keys, Tensor) and argument in names else None
            for name in set(draws or {}) - {"default"}:
                if name in first:
                    node = node_of(self.part.data["arguments"][argument]["draw"][name])
                    what = f"the set stands under '{first[name]}' too"
                    step = f"say it once: value_sets: {{{name}: {{{first[name]}: …, {argument}: …}}}}"
                    self.errors.append(node.complaint("KGB224", what, step))
                first.setdefault(name, argument)

    # --- one argument ---

    def _own_variables(self) -> set[str]:
        """Variables of cases that are not calls. Calls have their arguments themselves."""
        given = [values for _, values in self.part.case_nodes() if "call" not in values]
        if not given:
            return set()
        return set().union(*given, self.part.get("defaults") or {}, self.part.get("variables") or {})

    def _absent(self, parameter: Parameter, variables: Collection[str]) -> Argument:
        """The argument for a parameter that the file does not mention."""
        if takes_tensors(parameter) and not (parameter.has_default and parameter.default is None):
            shape = "{access: read, shape: …, draw: …}"
            what = f"parameter '{parameter.name}' of entry has no argument"
            self.errors.append(self.part.at("arguments").complaint("KGB242", what, f"add '{parameter.name}: {shape}'"))
        where = self.part.at("arguments").where
        if parameter.name in variables:
            return ScalarArgument(parameter.name, Expr.parse(parameter.name, where))
        return ScalarArgument(parameter.name, Expr.parse(repr(parameter.default), where), is_default=True)

    def _argument(self, parameter: Parameter, keys: Tensor | Scalar, sets: dict[str, Draw]) -> Argument:
        if isinstance(keys, Scalar):
            if takes_tensors(parameter) and not parameter.type.endswith("| None"):
                step = "write {access: …, shape: …}, or change entry"
                self.errors.append(keys.at.node.complaint("KGB243", "has a value, and entry says it is a Tensor", step))
            return ScalarArgument(parameter.name, keys.value)
        if not takes_tensors(parameter):
            step = "write {value: …}, or change entry"
            what = f"is a tensor's, and entry says it is {parameter.type}"
            self.errors.append(keys.at.node.complaint("KGB243", what, step))
        elif keys.count is not None and plain_type(parameter.type) not in TENSOR_LISTS:
            step = f"write '{parameter.name}: list[Tensor]' there"
            self.errors.append(keys.node("count").complaint("KGB243", f"entry says {parameter.type}", step))
        elif keys.none_when is not None and not parameter.type.endswith("| None"):
            step = f"write '{parameter.name}: Tensor | None' there"
            self.errors.append(keys.node("none_when").complaint("KGB243", f"entry says {parameter.type}", step))
        elif keys.access != Access.WRITE and keys.draw is None:
            step = "add 'draw: normal()', or what its values are"
            self.errors.append(keys.at.node.complaint("KGB222", "'draw' is missing", step))
        return TensorArgument(
            name=parameter.name,
            access=keys.access,
            shape=keys.shape,
            dtype=Expr.parse("dtype", keys.at.node.where) if keys.dtype is None else keys.dtype,
            strides=keys.strides,
            offset=keys.offset,
            passed=keys.passed,
            live=keys.live,
            draw={**(keys.draw or {}), **sets},
            none_when=keys.none_when,
            shuffled=keys.shuffled,
            count=keys.count,
            host=keys.device is not None,
        )
