"""Every key of a problem file, as pydantic models: the reader, the JSON Schema and docs/problem-format.md follow them.

A model has the keys that are allowed at one place of the file, with their types. Keys that overloads may have instead
are optional to pydantic; ``overload.py`` checks which are required in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    Tag,
    ValidationInfo,
    model_validator,
)

from kgbench.core.errors import ProblemFileError
from kgbench.core.names import did_you_mean
from kgbench.problem.format.leaves import (
    NONE,
    Boolean,
    Call,
    Capability,
    Choices,
    Constant,
    Defaults,
    Defined,
    Derived,
    Draws,
    DrawText,
    Dtype,
    Entry,
    Expression,
    Function,
    FunctionOrNone,
    Host,
    Line,
    NoLibrary,
    Passed,
    ProblemKind,
    Range,
    Reasons,
    Reference,
    Rule,
    Strides,
    Subnormals,
    Target,
    Template,
    TensorAccess,
    Text,
    Ulps,
    Whole,
)
from kgbench.problem.model import GPU_PRESETS, Access, Cost, Fuzz, Needs, PassedAs, Returned, Tolerance
from kgbench.problem.yamltree import Complaint, Items, Keys, Node, node_of

HEAD: Final = ("summary", "kind", "category")
Errors = Iterator[ProblemFileError]


class Place(BaseModel):
    """The keys that are allowed at one place of the file."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    _at: Keys = PrivateAttr()

    @property
    def at(self) -> Keys:
        """By key, its value as written in the file."""
        return self._at

    def node(self, key: str) -> Node:
        return node_of(self._at[key])

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, datum: Any, handler: ModelWrapValidatorHandler[Place], info: ValidationInfo) -> Place:
        known = cls._known(datum, info.context)
        made = handler(known)
        made._at = known
        if errors := tuple(made.errors()):
            raise Complaint(*errors)
        return made

    @classmethod
    def _known(cls, datum: Any, complaints: Any) -> Any:
        """The mapping without unknown keys; each unknown key adds a complaint."""
        if not isinstance(datum, Keys) or all(key in cls.model_fields for key in datum):
            return datum
        known = Keys({key: child for key, child in datum.items() if key in cls.model_fields})
        known.node, known.whole = datum.node, False
        for key, child in datum.items():
            if key not in cls.model_fields:
                complaints.append(
                    node_of(child).complaint("KGB220", "unknown key", did_you_mean(key, cls.model_fields))
                )
        return known

    def errors(self) -> Errors:
        """Complaints about combinations of keys that are correct alone."""
        yield from ()


class Dtypes(Place):
    required: list[Dtype] = Field(description="every case that sets no dtype of its own runs once in each of these")
    optional: list[Dtype] = Field([], description="known to make sense, run only when asked for")


class ReturnedTensor(Place):
    dtype: Expression | None = Field(None, description="when absent the case's; of source aten torch's own rule")
    shape: Expression | None = Field(None, description="when absent the reference's; of source aten torch's own rule")
    strides: Strides | None = Field(None, description="judged only where given; the word aten: as ATen gives them")

    def made(self) -> Returned:
        if isinstance(self.strides, str):
            return Returned(self.dtype, self.shape, as_aten=True)
        return Returned(self.dtype, self.shape, self.strides)


class Tensor(Place):
    access: TensorAccess = Field(description="read, write (holds a sentinel before the call) or readwrite")
    count: Expression | None = Field(None, description="for a list[Tensor], the number of tensors")
    shape: Expression | None = Field(None, description="the logical view's shape, a tuple")
    dtype: Expression | None = Field(None, description="its dtype; the case's when absent")
    strides: Expression | None = Field(
        None, description="strides of the view, in elements; row-major when absent or None"
    )
    offset: Expression | None = Field(None, description="elements of storage before the view's first; 0 when absent")
    passed: Passed = Field(PassedAs.VIEW, description="what the candidate gets: the view, its storage, or pointers")
    shuffled: Expression | None = Field(None, description="with passed: pointers; where true they are in no order")
    live: Expression | None = Field(None, description="a mask over the view's indices i, j, k, l")
    draw: Draws | None = Field(None, description="how values are drawn: one text, or one per value set")
    none_when: Expression | None = Field(None, description="where this is true None is passed")
    device: Host | None = Field(None, description="cpu: in the host's memory also on a GPU")

    def errors(self) -> Errors:
        if self.access == Access.WRITE and self.draw is not None:
            step = "remove it, or write access: readwrite"
            yield self.node("draw").complaint("KGB224", "a 'write' argument has no values before the call", step)
        if self.shuffled is not None and self.passed != PassedAs.POINTERS:
            yield self.node("shuffled").complaint("KGB224", "belongs to 'passed: pointers'", "remove it")
        if self.device is None:
            return
        for key in ("strides", "offset", "passed", "live"):
            if key in self.at:
                yield self.node(key).complaint("KGB224", "a tensor on the host is row-major and whole", "remove it")
        if self.access != Access.READ:
            yield self.node("device").complaint("KGB224", "a tensor on the host is read only", "write access: read")


class Scalar(Place):
    value: Expression = Field(description="an expression; its value must have the parameter's type")


def _is_scalar(datum: Any) -> str:
    return "scalar" if isinstance(datum, Keys) and "value" in datum else "tensor"


Argument = Annotated[
    Annotated[Tensor, Tag("tensor")] | Annotated[Scalar, Tag("scalar")], Discriminator(_is_scalar)
]  # fmt: skip


class Drawn(Place):
    range: Range | None = Field(None, description="[lowest, highest], whole numbers, both inclusive")
    choice: Choices | None = Field(None, description="a list of values; one that stands twice is drawn twice as often")

    def errors(self) -> Errors:
        if len(self.at) != 1:
            step = "write {range: [1, 64]} or {choice: [a, b]}"
            yield self.at.node.complaint("KGB246", "expected 'range' or 'choice'", step)


DrawnVariable = Annotated[
    Annotated[Drawn, Tag("rule")] | Annotated[Constant, Tag("constant")],
    Discriminator(lambda datum: "rule" if isinstance(datum, Keys) else "constant"),
]


class FuzzKeys(Place):
    count: Whole = Field(description="cases per run")
    call: Call | None = Field(None, description="the call, with $name for what is drawn, where cases are calls")
    draw: dict[str, DrawnVariable] = Field(description="per variable, how it is drawn: a rule or a constant")
    dtypes: list[Dtype] = Field([], description="from which the dtype is drawn; the required ones when absent")

    def errors(self) -> Errors:
        if self.dtypes and "dtype" in self.draw:
            yield self.node("dtypes").complaint("KGB224", "'draw' has a dtype too", "keep one")

    def made(self) -> Fuzz:
        draw = {name: _rule(drawn) for name, drawn in self.draw.items()}
        return Fuzz(self.count, draw, tuple(self.dtypes), self.call)


def _rule(drawn: Any) -> Any:
    if not isinstance(drawn, Drawn):
        return drawn
    return {"choice": drawn.choice} if drawn.range is None else {"range": drawn.range}


class Bench(Place):
    cpu: list[Template] | None = Field(None, description="without a GPU: a call of at most two seconds")
    gpu: list[Template] | None = Field(None, description="a GPU of any size")
    gpu24: list[Template] | None = Field(None, description="24 GB")
    gpu80: list[Template] | None = Field(None, description="80 GB")
    gpu140: list[Template] | None = Field(None, description="140 GB")

    def errors(self) -> Errors:
        for key in self.at:
            if not getattr(self, key):
                step = "remove the preset, or give it cases"
                yield self.node(key).complaint("KGB225", "expected at least one case", step)
        if len({"gpu", *GPU_PRESETS} & set(self.at)) == len(GPU_PRESETS) + 1:
            yield self.node("gpu").complaint("KGB224", "every GPU has a preset of its own", "remove it")

    def presets(self) -> dict[str, str]:
        """The key that has the cases of each preset. With ``gpu``, an absent preset has the next smaller one's."""
        found = {"cpu": "cpu"} if self.cpu else {}
        smaller = "gpu" if self.gpu else ""
        for preset in GPU_PRESETS:
            key = preset if getattr(self, preset) else smaller
            smaller = key if self.gpu else ""
            if key:
                found[preset] = key
        return found


class Cases(Place):
    check: list[Template] = Field(description="small and awkward calls; at least one")
    opinfo: list[Template] = Field([], description="calls with the shapes of PyTorch's own samples")
    large: list[Template] = Field([], description="calls for a GPU alone: offsets or sizes that overflow 32 or 16 bits")
    fuzz: FuzzKeys | None = Field(None, description="ranges from which every run draws fresh cases")
    bench: Bench | None = Field(None, description="realistic sizes, timed, by preset")

    def errors(self) -> Errors:
        if not self.check:
            yield self.node("check").complaint("KGB225", "expected at least one case")


class Baseline(Place):
    cuda: Target | None = Field(None, description="the library call on a GPU")
    cpu: Target | None = Field(None, description="the same without one")


class ToleranceKeys(Place):
    rule: Rule = Field(description="accumulate, rounding, quantize or exact")
    length: Expression | None = Field(None, description="for accumulate: the number of terms summed for one element")
    ulps: Ulps = Field(4.0, description="for rounding and quantize: units in the last place of the arithmetic")
    compute: Expression | None = Field(None, description="the dtype of the arithmetic")

    OWNERS: ClassVar[dict[str, tuple[str, ...]]] = {"length": ("accumulate",), "ulps": ("rounding", "quantize")}

    def errors(self) -> Errors:
        if self.rule == "accumulate" and self.length is None:
            step = "add 'length: …', the number of terms summed for one output element"
            yield self.at.node.complaint("KGB222", "'length' is missing", step)
        for key, owners in self.OWNERS.items():
            if key in self.at and self.rule not in owners:
                owner = "' or '".join(owners)
                what = f"belongs to rule '{owner}', and the rule is '{self.rule}'"
                yield self.node(key).complaint("KGB224", what, "remove it")

    def made(self) -> Tolerance:
        return Tolerance(self.rule, self.length, self.ulps, self.compute)


class CostKeys(Place):
    flops: Expression = Field(description="floating-point operations of a call")
    bytes: Expression = Field(description="bytes that must move, each operand counted once")
    arithmetic: Dtype | None = Field(None, description="dtype of the factors, if no variable names it")
    loose: Line | None = Field(None, description="why no kernel comes near this bound, so that it does not count")

    def made(self) -> Cost:
        return Cost(self.flops, self.bytes, self.arithmetic or "", self.loose or "")


class Mutants(Place):
    equivalent: Reasons = Field(description="standard mutants that are correct here, by name, with the reason")


class NeedsKeys(Place):
    capability: Capability = Field(description="the lowest compute capability, 90 for 9.0, or [lowest, highest]")
    reason: Text = Field("", description="why, in a few words")

    def made(self) -> Needs:
        return Needs(self.capability.lowest, self.capability.highest, self.reason)


def _is_word(datum: Any) -> str:
    return "keys" if isinstance(datum, (Keys, Items)) else "word"


class Body(Place):
    """The keys of a file's only overload, those shared by all overloads, or those of one overload."""

    entry: Entry | None = Field(None, description="the function that a candidate defines, a typed Python signature")
    returns: Annotated[
        Annotated[list[ReturnedTensor], Tag("keys")] | Annotated[Text, Tag("word")], Discriminator(_is_word)
    ] | None = Field(None, description="dtype, shape and strides of what is returned")  # fmt: skip
    values: Defined | None = Field(None, description="undefined where no value of the result is defined")
    dtypes: Dtypes | None = Field(None, description="the dtypes that cases run in")
    defaults: Defaults | None = Field(None, description="values of variables that a case may leave out")
    variables: Derived | None = Field(None, description="further variables, each an expression over those above it")
    arguments: dict[str, Argument] | None = Field(None, description="one key per parameter of entry")
    value_sets: dict[str, dict[str, DrawText]] | None = Field(
        None, description="how several arguments are drawn together, by the name that a case's values picks"
    )
    cases: Cases | None = Field(None, description="the calls that are judged")
    baseline: Annotated[
        Annotated[Baseline, Tag("keys")] | Annotated[NoLibrary, Tag("word")], Discriminator(_is_word)
    ] | None = Field(None, description=f"the library call per device, or {NONE}")  # fmt: skip
    signature: Text | None = Field(
        None, description="a BLAS routine's arguments, one letter each: i pi pi x x; or the schema of vLLM's operator"
    )
    fallback: FunctionOrNone | None = Field(None, description="package.module:function, a plain torch version")
    reference: Reference | None = Field(
        None, description="the correct result: an expression, a path or def reference(…)"
    )
    prepare: Function | None = Field(None, description="package.module:function that finishes drawn values")
    tolerance: ToleranceKeys | None = Field(None, description="the arithmetic from which limits follow")
    cost: CostKeys | None = Field(None, description="the least work of a call")
    alias: Text | None = Field(None, description="kind view only: the argument whose storage the result shares")
    mutants: Mutants | None = Field(None, description="which standard mutants are correct here")
    canonical: Function | None = Field(
        None, description="package.module:function that brings all correct answers into one form"
    )
    needs: NeedsKeys | None = Field(None, description="what a GPU must have for the problem to be judged on it")
    edges: list[dict[str, Expression]] | None = Field(
        None, description="results of special arguments, a row each: {self: nan, gives: nan}"
    )
    subnormals: Subnormals | None = Field(
        None, description="zero: a kernel may take numbers below 2 ** -126 for zero; kept: it may not"
    )


class OverloadKeys(Body):
    required: Boolean = Field(True, description="false takes the overload out of the verdict")
    reason: Text = Field("", description="why it is not required; stands beside required: false")

    def errors(self) -> Errors:
        if self.required and "reason" in self.at:
            yield self.node("reason").complaint("KGB224", "stands only beside 'required: false'", "remove it")
        if not self.required and "reason" not in self.at:
            step = "add 'reason: …', why it is not judged"
            yield self.at.node.complaint("KGB222", "'reason' is missing beside 'required: false'", step)


class File(Body):
    summary: Line | None = Field(None, description="what the operator does, one line")
    kind: ProblemKind | None = Field(None, description="compute, view, creation, random or sync")
    category: Line | None = Field(None, description="a word to filter by, such as gemm")
    doc: Text | None = Field(None, description="what the author is told beyond the signature")
    overloads: dict[str, OverloadKeys] | None = Field(None, description="further signatures, by name")

    model_config = ConfigDict(json_schema_extra={"required": [*HEAD, "doc"]}, title="kgbench problem", extra="forbid")


PLACES: Final[dict[str, tuple[type[Place], ...]]] = {
    "## Body": (File,), "overloads": (OverloadKeys,), "dtypes": (Dtypes,),
    "arguments": (Tensor, Scalar, ReturnedTensor), "cases": (Cases, FuzzKeys, Drawn, Bench),
    "baseline": (Baseline,), "tolerance": (ToleranceKeys,),
    "cost": (CostKeys,), "mutants": (Mutants,), "needs": (NeedsKeys,),
}  # fmt: skip
"""The models, by the heading of docs/problem-format.md that lists their keys."""
