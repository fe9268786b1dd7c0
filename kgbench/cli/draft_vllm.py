"""The draft of a problem file for a compiled operator of vLLM, from the schema that it is registered with.

Where vLLM is installed torch is asked; elsewhere the schemas of vLLM 0.20.2 are read from ``vllm_schemas.txt``. A
schema says types, order and what is written; what no schema tells stands in comments that begin with TODO.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from kgbench import baselines
from kgbench.baselines.vllm_operators import OPERATORS
from kgbench.cli.draft_blas import NoDraft
from kgbench.core.names import did_you_mean
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.problem.schemas import TYPES, Schema, SchemaParameter, parsed

VERSION: Final = "vLLM 0.20.2"
TABLE: Final = Path(baselines.__file__).with_name("vllm_schemas.txt")
"""A schema a line, as csrc/torch_bindings.cpp of that version has them; those of communication are left out."""

_ASK_S: Final = 300.0
"""Seconds that torch and vLLM's libraries may take to load."""
_VALUES: Final = {"int": "1", "float": "1.0", "bool": "false", "str": "auto"}
"""What a number, truth value or text is in cases that do not say, by kind."""
_EDIT: Final = "  # EDIT: "


def vllm_draft(name: str) -> str:
    """The text of the file. Raises NoDraft where no schema is known, or where no entry can be it."""
    schema, source = schema_of(name)
    for each in schema.parameters:
        if each.kind.replace("SymInt", "int") not in TYPES:
            raise NoDraft(f"no type of an entry is its '{each.kind} {each.name}'; {schema.name} cannot be a problem")
    returns = schema.returns.strip("()").split(", ") if schema.returns.strip("()") else []
    if set(returns) - {"Tensor"} or not (returns or any(each.is_written for each in schema.parameters)):
        raise NoDraft(f"{schema.name} neither writes a tensor nor returns one: '-> {schema.returns}'")
    return "\n".join(_Draft(name, schema, source).lines()) + "\n"


def schema_of(name: str) -> tuple[Schema, str]:
    """The operator's schema, and whose it is. Raises NoDraft."""
    if importlib.util.find_spec("vllm") is not None:
        try:
            (said,) = ask("kgbench.torchtools.vllm_schema", {"operator": name}, _ASK_S)
        except NoAnswer as error:
            said = {"unknown": str(error)}
        if "schema" in said:
            return parsed(str(said["schema"])), str(said["version"])
        raise NoDraft(str(said["unknown"]))
    known = {schema.name.partition("::")[2]: schema for schema in map(parsed, TABLE.read_text("utf-8").splitlines())}
    if name not in known:
        near = did_you_mean(name, known)
        raise NoDraft(f"{VERSION} registers no {name}, and no other vLLM is installed here; {near}")
    return known[name], VERSION


@dataclass(frozen=True)
class _Draft:
    name: str
    schema: Schema
    source: str

    @cached_property
    def parameters(self) -> list[SchemaParameter]:
        """The schema's; where two have one name, as some of vLLM's have, the later is numbered."""
        found: list[SchemaParameter] = []
        for each in self.schema.parameters:
            alike = sum(other.name.rstrip("0123456789") == each.name for other in found)
            found.append(replace(each, name=f"{each.name}{alike + 1}") if alike else each)
        return found

    @cached_property
    def tensors(self) -> list[SchemaParameter]:
        return [each for each in self.parameters if each.kind.startswith("Tensor")]

    @property
    def returned(self) -> int:
        """Tensors that come back."""
        return self.schema.returns.count("Tensor")

    def lines(self) -> Iterator[str]:
        yield f"# A first draft by kgbench new vllm {self.name}, from the schema that {self.source} registers."
        yield "# TODO: compare each line with vLLM's source, and decide what the TODO comments ask."
        yield f"summary: {self.name} of vLLM  # TODO: say what it computes, one line"
        yield "kind: compute"
        yield "category: vllm  # TODO: name a word to filter by"
        parameters = ", ".join(f"{each.name}: {_type(each)}" for each in self.parameters)
        yield f'entry: "{self.name}({parameters}) -> {self._returns()}"'
        if self.name not in OPERATORS:
            kept = ", ".join(f"{each.kind}{'!' * each.is_written} {each.name}" for each in self.parameters)
            yield f'signature: "{self.schema.name}({kept}) -> {self.schema.returns}"'
        yield "dtypes: {required: [float16, bfloat16]}  # TODO: those that the kernel is built for"
        yield from self._defaults()
        yield "arguments:"
        for each in self.tensors:
            yield from self._argument(each)
        for each in self.parameters:
            if each.kind.rstrip("?") == "ScalarType":
                yield f'  {each.name}: {{value: "dtype"}}  # TODO'
        if self.returned:
            item = '{shape: "(m, n)"}'
            yield f"returns: [{', '.join([item] * self.returned)}]  # TODO: dtype and shape of each"
        yield from self._cases()
        yield from self._reference()
        yield "tolerance: {rule: rounding}  # TODO: accumulate for sums of products, quantize for codes, or exact"
        yield '# TODO: cost: {flops: "m * n", bytes: "2 * itemsize * m * n"}, never more than an honest kernel must do'
        yield "# TODO: fallback: package.module:function, a plain torch version that is timed where vLLM does not run"
        yield "doc: |  # TODO: what it computes, layouts, what is read and what is written, edge rules, the source"
        yield f"  {self.schema.name}({', '.join(f'{each.kind} {each.name}' for each in self.parameters)})"

    def _returns(self) -> str:
        return {0: "None", 1: "Tensor"}.get(self.returned, f"tuple[{', '.join(['Tensor'] * self.returned)}]")

    def _defaults(self) -> Iterator[str]:
        found = {}
        for each in self.parameters:
            kind = each.kind.replace("SymInt", "int").rstrip("?")
            if kind in _VALUES:
                found[each.name] = "null" if each.kind.endswith("?") else _yaml(each.default) or _VALUES[kind]
        if found:
            listed = ", ".join(f"{name}: {value}" for name, value in found.items())
            yield f"defaults: {{{listed}}}  # TODO: what callers pass"

    def _argument(self, each: SchemaParameter) -> Iterator[str]:
        access = "readwrite" if each.is_written else "read"
        doubt = "write where nothing of it is read, and without draw; " if each.is_written else ""
        count = ', count: "2"' if each.kind.endswith("[]") else ""
        yield f"  # TODO: {doubt}shape, dtype, values in range where they are indices"
        yield f'  {each.name}: {{access: {access}{count}, shape: "(m, n)", draw: "normal()"}}'

    def _cases(self) -> Iterator[str]:
        yield "cases:"
        yield "  check:  # TODO: small and awkward calls: empty, one, prime, strided, special values, each option"
        yield "    - {m: 1, n: 16}"
        yield "    - {m: 7, n: 96}"
        yield "  fuzz:"
        yield "    count: 4"
        yield "    draw: {m: {range: [1, 40]}, n: {choice: [16, 64, 128]}}"
        yield "  bench:  # TODO: the sizes of models; a call of at most two seconds on a CPU"
        yield "    cpu: [{m: 64, n: 1024, dtype: bfloat16}]"
        yield "    gpu: [{m: 4096, n: 4096, dtype: bfloat16}]"

    def _reference(self) -> Iterator[str]:
        written = {each.name: each.name for each in self.tensors if each.is_written}
        like = next((each.name for each in self.tensors), "torch.zeros(1)")
        names = [] if not self.returned else ["return"] if self.returned == 1 else [
            f"return[{place}]" for place in range(self.returned)
        ]  # fmt: skip
        answers = ", ".join(f'"{key}": {value}' for key, value in {**written, **dict.fromkeys(names, like)}.items())
        yield f"reference: |{_EDIT}give the correct result; a schema does not tell it, and this one changes nothing"
        yield f"  def reference({', '.join(each.name for each in self.parameters)}):"
        yield f"      return {{{answers}}}"


def _type(each: SchemaParameter) -> str:
    return TYPES[each.kind.replace("SymInt", "int")]


def _yaml(default: str) -> str:
    """A schema's default as YAML; empty where it has none that can be written."""
    known = {"None": "null", "True": "true", "False": "false", "true": "true", "false": "false"}
    return known.get(default, default if default.replace(".", "", 1).lstrip("-").isdigit() else "")
