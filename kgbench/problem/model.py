"""A problem file's content as frozen data. ``validate.py`` reads files into it; ``cases`` expands it to cases.

Torch-free. Expressions are parsed ``Expr`` objects until a case gives values to their variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
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
"""kgbench's own sources. A user's folder may have others, with names that match SOURCE_NAME."""
SOURCE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*$")
SHARED_TEXTS: Final = "_doc.yaml"
"""Name of the file with the texts that several problems of a source share; it is not a problem."""
RULES: Final = ("accumulate", "rounding", "quantize", "exact")
GPU_PRESETS: Final = ("gpu24", "gpu80", "gpu140")
TIMED_KINDS: Final = (Kind.COMPUTE, Kind.RANDOM)
LAZY: Final = ("", "conj", "neg")
TENSOR_LISTS: Final = ("list[Tensor]", "list[Tensor | None]")

CASE_OPTIONS: Final = ("values", "exact", "unjudged")
"""Variables with a fixed meaning that every case has; ``cases.Case`` explains them."""
CALL_OPTIONS: Final = ("offset", "lazy", "late")
"""The same of cases that are calls."""
LARGE_OPTIONS: Final = ("samples",)
"""The same of cases of phase large."""
ALWAYS: Final = frozenset({"dtype", "itemsize", *CASE_OPTIONS})
"""Variables that every case has."""


class Access(StrEnum):
    """What a candidate may do with a tensor argument."""

    READ = "read"
    WRITE = "write"
    """It holds a sentinel before the call."""
    READWRITE = "readwrite"


class PassedAs(StrEnum):
    """The form in which a candidate gets a tensor argument."""

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
    """The value for a call that leaves it out, as a Python value."""
    has_default: bool = False


def plain_type(written: str) -> str:
    """A parameter's type without ``| None`` around it."""
    return written.removesuffix(" | None")


def takes_tensors(parameter: Parameter) -> bool:
    """Whether its value is a tensor or a list of tensors."""
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
    """What the problem file requires of one returned tensor beyond the reference's or ATen's specification."""

    dtype: Expr | None = None
    shape: Expr | None = None
    strides: Expr | None = None
    """Strides in elements; None is not checked unless ``as_aten``."""
    as_aten: bool = False
    """Whether the strides must be ATen's."""


@dataclass(frozen=True)
class Draw:
    """How the elements of a tensor are drawn: a name from the table in
    ``harness/verdict/draws.py`` and its arguments."""

    name: str
    arguments: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class TensorArgument:
    """A tensor that the referee makes: its logical view into storage, its values, and where a candidate may write."""

    name: str
    access: Access
    shape: Expr | None
    """Shape of the logical view, a tuple; None if only calls give it."""
    dtype: Expr
    """A dtype's name as text; by default the case's ``dtype``."""
    strides: Expr | None = None
    """Strides in elements; None is contiguous."""
    offset: Expr | None = None
    """Number of elements of storage before the view's first; None for 0."""
    passed: PassedAs = PassedAs.VIEW
    live: Expr | None = None
    """Mask over the index tensors ``i, j, k, l`` of the view. Elements outside must be neither read nor changed."""
    draw: dict[str, Draw] = field(default_factory=dict)
    """How values are drawn, by value set of the case (``default``, ``integers``, ``special`` …)."""
    none_when: Expr | None = None
    shuffled: Expr | None = None
    """Pointers only: if true, the addresses are in random order."""
    count: Expr | None = None
    """Lists only: number of tensors."""
    host: bool = False
    """Whether the candidate gets it in host memory on any device."""


@dataclass(frozen=True)
class ScalarArgument:
    """An argument that is a Python value: an expression over the case's variables."""

    name: str
    value: Expr
    is_default: bool = False
    """Whether the file does not mention it, so that a call or the entry's default gives its value."""


Argument = TensorArgument | ScalarArgument


@dataclass(frozen=True)
class Tolerance:
    """The arithmetic that determines limits; ``harness/verdict/compare.py`` has the formulas."""

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
    """A case as written: values of variables, without defaults and dtypes."""

    variables: dict[str, Any]
    line: int
    call: ParsedCall | None = None
    """The call in the trace format with ``$name`` for variables; None if expressions make the arguments."""

    @property
    def written(self) -> dict[str, Any]:
        """The variables, with the call under the name ``call``."""
        return self.variables if self.call is None else {**self.variables, "call": self.call}


@dataclass(frozen=True)
class Fuzz:
    """Ranges from which every run draws new cases by its secret seed."""

    count: int
    draw: dict[str, Any]
    """Per variable ``{"range": [low, high]}`` (inclusive), ``{"choice": [...]}`` or a plain constant."""
    dtypes: tuple[str, ...] = ()
    call: ParsedCall | None = None
    """The call in the trace format with ``$name`` for drawn variables; None if expressions make the arguments."""


@dataclass(frozen=True)
class Cost:
    """The least work of a call."""

    flops: Expr
    bytes: Expr
    arithmetic: str = ""
    """Dtype of the factors that are multiplied, where no variable of the call names it."""
    loose: str = ""
    """Why no kernel comes near the time that this work takes; empty where one may."""


@dataclass(frozen=True)
class Needs:
    """The device capabilities that an overload needs to be judged. A CPU always has them."""

    lowest: int
    """Compute capability, 90 for 9.0."""
    highest: int | None = None
    reason: str = ""

    @property
    def words(self) -> str:
        """``compute capability 9.0 or newer: reason``"""
        return capability_words(self.lowest, self.highest, self.reason)

    def lacking(self, capability: int | None) -> Capability | None:
        """What a device of this capability (None for a CPU) lacks; None if nothing."""
        if capability is None or self.lowest <= capability <= (self.highest or capability):
            return None
        return Capability(self.lowest, self.highest, self.reason, capability)


@dataclass(frozen=True)
class Edge:
    """The required results for special arguments."""

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
    """One signature of a problem, with its own cases and verdict."""

    name: str
    """The name, such as ``Tensor`` for ``add.Tensor``; empty for the only overload."""
    required: bool
    reason: str
    """Why it is not required; empty if it is."""
    signature: Signature
    arguments: tuple[Argument, ...]
    """Arguments in the signature's order, one per parameter."""
    variables: dict[str, Expr]
    """Derived variables, evaluated in order after the case's own."""
    defaults: dict[str, Any]
    """Default values of variables that a case may leave out."""
    dtypes: tuple[str, ...]
    optional_dtypes: tuple[str, ...]
    check: tuple[CaseTemplate, ...]
    fuzz: Fuzz | None
    bench: dict[str, tuple[CaseTemplate, ...]]
    """Bench cases by preset."""
    baseline: dict[str, str]
    """By device kind (``cuda``, ``cpu``), a target such as ``cublas:cublasSgemm_v2``. A BLAS routine whose signature is
    in the file has the form ``cublas:cublasSrot_v2(i pi pi x x)`` of ``problem/blas.py``.
    """
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
    """Standard mutants that are correct for this operator, with the reason."""
    opinfo: tuple[CaseTemplate, ...] = ()
    """Calls with the shapes of PyTorch's own samples, judged like check cases."""
    large: tuple[CaseTemplate, ...] = ()
    """Calls that need a GPU: offsets beyond 2**31 elements, or sizes beyond a grid's second dimension."""
    returned_argument: str = ""
    """Name of the written argument that the entry returns, as ATen's in-place functions do; empty without one."""
    returns: tuple[Returned, ...] = ()
    """By returned tensor, what the file requires; empty if it requires nothing further."""
    values_defined: bool = True
    """False if no value of the result is defined, as of ``empty_strided``."""
    kind: Kind = Kind.COMPUTE
    """The problem's."""
    canonical: str | None = None
    """Dotted path of a function that maps every correct answer to the same one, or None."""
    needs: Needs | None = None
    edges: tuple[Edge, ...] = ()
    """Required results for special arguments; ``check`` has cases of them."""
    subnormals_may_be_zero: bool = False
    """Whether a kernel may replace float32's subnormal numbers by zero, in arguments and in results."""
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
        """The overloads that have cases; an optional overload without cases is only named in its file."""
        return [overload for overload in self.overloads if overload.check]

    def without_large_calls(self) -> Problem:
        """For self-tests, which have the library do the work: some libraries fail calls of phase ``large``."""
        return replace(self, overloads=tuple(replace(each, large=()) for each in self.overloads))


def module_of(problem: Problem) -> ModuleSource | None:
    """The file of a problem that is a PyTorch module; None for other problems."""
    return next((overload.module for overload in problem.overloads if overload.module is not None), None)
