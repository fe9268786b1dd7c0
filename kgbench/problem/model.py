"""What a problem file says, as frozen data. ``validate.py`` reads files into this; ``cases`` makes it concrete.

Everything here is free of torch. Expressions stay as parsed ``Expr`` objects until a case gives values to their
variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from kgbench.core.details.absence import Capability
from kgbench.core.details.sentences import capability_words
from kgbench.core.kinds import Kind
from kgbench.problem.calls import ParsedCall
from kgbench.problem.expressions import Expr
from kgbench.problem.modules import ModuleSource

SOURCES: Final = ("aten", "vllm", "cublas")
"""The benchmark's. A user's folder may hold others, named as SOURCE_NAME says."""
SOURCE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*$")
SHARED_TEXTS: Final = "_doc.yaml"
"""A file beside a source's problems that is none: the texts that several of them share."""
RULES: Final = ("accumulate", "rounding", "quantize", "exact")
GPU_PRESETS: Final = ("gpu24", "gpu80", "gpu140")
TIMED_KINDS: Final = (Kind.COMPUTE, Kind.RANDOM)
LAZY: Final = ("", "conj", "neg")
TENSOR_LISTS: Final = ("list[Tensor]", "list[Tensor | None]")

CASE_OPTIONS: Final = ("values", "exact", "unjudged")
"""Variables with a meaning of their own that every case has; ``cases.Case`` says what they mean."""
CALL_OPTIONS: Final = ("offset", "lazy", "late")
"""The same of cases that are calls."""
LARGE_OPTIONS: Final = ("samples",)
"""The same of cases of phase large."""
ALWAYS: Final = frozenset({"dtype", "itemsize", *CASE_OPTIONS})
"""Variables that every case has."""


class Access(StrEnum):
    """What a candidate does with a tensor argument."""

    READ = "read"
    WRITE = "write"
    """It holds a sentinel before the call."""
    READWRITE = "readwrite"


class PassedAs(StrEnum):
    """What a candidate gets of a tensor argument."""

    VIEW = "view"
    STORAGE = "storage"
    """The whole storage as one 1-D tensor (cuBLAS)."""
    POINTERS = "pointers"
    """An int64 tensor with the address of each ``view[b]``."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an entry's signature, as written in the problem file."""

    name: str
    type: str
    """One of ``format.signature.TYPES``, or ``X | None``."""
    keyword_only: bool = False
    default: Any = None
    """What a call that leaves it out means, as a Python value."""
    has_default: bool = False


def plain_type(written: str) -> str:
    """A parameter's type without ``| None`` around it."""
    return written.removesuffix(" | None")


def takes_tensors(parameter: Parameter) -> bool:
    """A tensor or a list of them."""
    return plain_type(parameter.type) in ("Tensor", *TENSOR_LISTS)


@dataclass(frozen=True)
class Signature:
    """The function a candidate defines: ``name(parameters) -> returns``."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    """``None``, ``Tensor``, ``tuple[Tensor, Tensor]``, ``list[Tensor]``, ``Scalar`` …"""
    text: str


@dataclass(frozen=True)
class Returned:
    """What the problem file promises about one returned tensor beyond what the reference or ATen says."""

    dtype: Expr | None = None
    shape: Expr | None = None
    strides: Expr | None = None
    """Strides in elements, checked only where given; None is not checked unless ``as_aten``."""
    as_aten: bool = False
    """Strides as ATen gives them."""


@dataclass(frozen=True)
class Draw:
    """How the elements of a tensor are drawn: a name from the table in
    ``harness/verdict/draws.py`` and its arguments."""

    name: str
    arguments: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class TensorArgument:
    """A tensor the referee makes: its logical view into storage, its values, and who may write where."""

    name: str
    access: Access
    shape: Expr | None
    """Shape of the logical view, a tuple; None where only calls give it."""
    dtype: Expr
    """A dtype's name as text; by default the case's ``dtype``."""
    strides: Expr | None = None
    """Strides in elements; None is contiguous."""
    offset: Expr | None = None
    """Elements of storage before the view's first; None is 0."""
    passed: PassedAs = PassedAs.VIEW
    live: Expr | None = None
    """Mask over the index tensors ``i, j, k, l`` of the view. Elements outside are poison and must stay as they are."""
    draw: dict[str, Draw] = field(default_factory=dict)
    """Per value set of the case (``default``, ``integers``, ``special`` …) how values are drawn."""
    none_when: Expr | None = None
    shuffled: Expr | None = None
    """Pointers only: where true, the addresses are in no order."""
    count: Expr | None = None
    """Lists only: how many tensors."""
    host: bool = False
    """The candidate gets it in the memory of the host, wherever it runs."""


@dataclass(frozen=True)
class ScalarArgument:
    """An argument that is a Python value: an expression over the case's variables."""

    name: str
    value: Expr
    is_default: bool = False
    """The file says nothing of it: a call gives it, or the entry's default stands."""


Argument = TensorArgument | ScalarArgument


@dataclass(frozen=True)
class Tolerance:
    """The arithmetic from which limits follow; ``harness/verdict/compare.py`` has the formulas."""

    rule: str
    """One of RULES."""
    length: Expr | None = None
    """accumulate: number of terms summed for one output element."""
    ulps: float = 4.0
    """rounding and quantize: units in the last place of the compute dtype."""
    compute: Expr | None = None
    """dtype of the arithmetic, an expression; default float32 for 16-bit and float32, else the dtype itself."""


@dataclass(frozen=True)
class CaseTemplate:
    """A case as written: values for variables, before defaults and dtypes are filled in."""

    variables: dict[str, Any]
    line: int
    call: ParsedCall | None = None
    """The call in the trace format with ``$name`` for variables; None where expressions make the arguments."""

    @property
    def written(self) -> dict[str, Any]:
        """The variables, and the call as the one of that name."""
        return self.variables if self.call is None else {**self.variables, "call": self.call}


@dataclass(frozen=True)
class Fuzz:
    """Ranges from which every run draws fresh cases from its secret seed."""

    count: int
    draw: dict[str, Any]
    """Per variable ``{"range": [low, high]}`` (inclusive), ``{"choice": [...]}`` or a plain constant."""
    dtypes: tuple[str, ...] = ()
    call: ParsedCall | None = None
    """The call in the trace format with ``$name`` for what is drawn; None where expressions make the arguments."""


@dataclass(frozen=True)
class Cost:
    flops: Expr
    bytes: Expr


@dataclass(frozen=True)
class Needs:
    """What a device must have for an overload to be judged on it. A CPU always has it."""

    lowest: int
    """Compute capability, 90 for 9.0."""
    highest: int | None = None
    reason: str = ""

    @property
    def words(self) -> str:
        """``compute capability 9.0 or newer: reason``"""
        return capability_words(self.lowest, self.highest, self.reason)

    def lacking(self, capability: int | None) -> Capability | None:
        """What a device of this capability, None for a CPU, lacks; None where it has all."""
        if capability is None or self.lowest <= capability <= (self.highest or capability):
            return None
        return Capability(self.lowest, self.highest, self.reason, capability)


@dataclass(frozen=True)
class Edge:
    """What is promised of special arguments."""

    given: dict[str, Any]
    """Values by the entry's parameter; for a tensor, the value of each element."""
    gives: tuple[Any, ...]
    """The correct results, one or several."""
    line: int

    @property
    def words(self) -> str:
        """``self = -inf, exponent = 0.5 gives inf or nan``."""
        given = ", ".join(f"{name} = {value!r}" for name, value in self.given.items())
        return f"{given} gives {' or '.join(map(repr, self.gives))}"


@dataclass(frozen=True)
class Overload:
    """One signature of a problem with cases and verdict of its own."""

    name: str
    """``Tensor`` of ``add.Tensor``; empty for the only one."""
    required: bool
    reason: str
    """Why it is not required; empty otherwise."""
    signature: Signature
    arguments: tuple[Argument, ...]
    """Arguments in the signature's order, one per parameter."""
    variables: dict[str, Expr]
    """Derived variables, evaluated in order after the case's own."""
    defaults: dict[str, Any]
    """Values of case variables that a case may leave out."""
    dtypes: tuple[str, ...]
    optional_dtypes: tuple[str, ...]
    check: tuple[CaseTemplate, ...]
    fuzz: Fuzz | None
    bench: dict[str, tuple[CaseTemplate, ...]]
    """Bench cases by preset."""
    baseline: dict[str, str]
    """Per device kind (``cuda``, ``cpu``) a target such as ``cublas:cublasSgemm_v2``; of a BLAS routine whose signature
    stands in the file ``cublas:cublasSrot_v2(i pi pi x x)``, as ``problem/blas.py`` spells it."""
    fallback: str | None
    reference: str
    """An expression, a dotted path ``kgbench.baselines.references.cublas:gemm``, or a ``def reference(...)`` text."""
    prepare: str | None
    """Dotted path of a function that finishes drawn inputs (structure between tensors), or None."""
    tolerance: Tolerance
    cost: Cost | None
    alias: str | None
    """kind view: name of the argument whose storage the returned tensor must share."""
    equivalent: dict[str, str]
    """Standard mutants that give correct answers by what the operator is, with the reason."""
    opinfo: tuple[CaseTemplate, ...] = ()
    """Calls with the shapes of PyTorch's own samples, judged as check cases are."""
    large: tuple[CaseTemplate, ...] = ()
    """Calls that need a GPU: offsets beyond 2**31 elements, or sizes beyond a grid's second dimension."""
    returned_argument: str = ""
    """Name of the written argument that the entry returns, as ATen's in-place functions do; empty where it does not."""
    returns: tuple[Returned, ...] = ()
    """Per returned tensor what the file promises; empty where it adds nothing."""
    values_defined: bool = True
    """False where no value of the result is defined: ``empty_strided``."""
    kind: Kind = Kind.COMPUTE
    """The problem's."""
    canonical: str | None = None
    """Dotted path of a function that maps every correct answer to the same one, or None."""
    needs: Needs | None = None
    edges: tuple[Edge, ...] = ()
    """What is promised of special arguments; ``check`` has cases of them."""
    subnormals_may_be_zero: bool = False
    """A kernel may take numbers below the smallest normal one of float32 for zero, in arguments and in results."""
    module: ModuleSource | None = None
    """The file of a problem that is a module of PyTorch: it draws the inputs and is the reference."""


@dataclass(frozen=True)
class Problem:
    id: str
    """``<source>/<name>``."""
    source: str
    name: str
    summary: str
    category: str
    kind: Kind
    doc: str
    overloads: tuple[Overload, ...]
    path: Path
    sha256: str

    @property
    def judged(self) -> list[Overload]:
        """The overloads that have cases; an optional one without is only named in its file."""
        return [overload for overload in self.overloads if overload.check]


def module_of(problem: Problem) -> ModuleSource | None:
    """The file of a problem that is a module of PyTorch; None where it is none."""
    return next((overload.module for overload in problem.overloads if overload.module is not None), None)
