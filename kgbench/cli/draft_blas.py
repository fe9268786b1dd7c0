"""The draft of a problem file for a routine of cuBLAS, from what the header declares. No torch.

Names, order and types of the entry are C's; shapes, strides and leading dimensions follow the conventions of Fortran
BLAS for the flags and sizes that the routine takes. What no declaration tells stands in comments that begin with TODO.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kgbench.baselines import cblas_api, cublas_api
from kgbench.baselines.cublas_api import CParameter
from kgbench.baselines.named import function_names
from kgbench.baselines.routines import ROUTINES
from kgbench.core.names import did_you_mean
from kgbench.problem.blas import ENTRY_TYPES

REFERENCES: Final = ("kgbench.baselines.references.cublas", "kgbench.baselines.references.cublas_vectors")
_ELEMENTS: Final = {
    "float": "float32", "double": "float64", "cuComplex": "complex64", "cuDoubleComplex": "complex128",
    "__half": "float16", "__nv_bfloat16": "bfloat16", "int": "int32", "int64_t": "int64",
}  # fmt: skip
"""Dtypes by C type of an element; ``void`` is what the entry's dtype says."""
_FLAGS: Final = {"T": "N", "U": "L", "L": "L", "D": "N"}
"""Default values of flags in cases."""
_OTHER_FLAGS: Final = {"T": ("N", "T"), "U": ("L", "U"), "L": ("L", "R"), "D": ("N", "U")}
_SCALARS: Final = {"alpha": "1.0", "beta": "0.5"}
_SAME_REFERENCE: Final = {"geru": "ger", "dotu": "dot"}
"""Stems whose reference is another's: one that conjugates nothing."""
_BAND: Final = ("sbmv", "hbmv", "tbmv", "tbsv")
_GROUPS: Final = re.compile(r"[TULD]+|[pa][eiIl]*|[iIl]+|.")
"""Letters that stand together in a signature: an operand with what describes it."""
_EDIT: Final = "  # EDIT: "


class NoDraft(Exception):
    """There is no draft of a routine; the text says why."""


@dataclass(frozen=True)
class Operand:
    """A tensor of the routine as the file describes it."""

    parameter: CParameter
    letter: str
    shape: str
    strides: str
    """Strides as an expression; empty where there are no gaps."""
    sure: bool
    """True where the shape follows from a convention, False where it is a guess."""


def blas_draft(routine: str) -> str:
    """The text of the file. Raises NoDraft for a routine that the header lacks, or that no signature can call."""
    declared = cublas_api.declared(routine)
    if declared is None:
        near = did_you_mean(routine, cublas_api.known_routines())
        raise NoDraft(f"cuBLAS {cublas_api.VERSION} declares no {routine}; {near}")
    for each in declared:
        if not each.likely():
            raise NoDraft(f"no letter of a signature stands for its '{each.type} {each.name}'; call it from a module")
    return "\n".join(_Draft(routine, declared).lines()) + "\n"


@dataclass(frozen=True)
class _Draft:
    routine: str
    declared: tuple[CParameter, ...]

    @cached_property
    def letters(self) -> str:
        return "".join(each.likely() for each in self.declared)

    @cached_property
    def names(self) -> list[str]:
        """The entry's parameter names: those of C, with arrays of pointers told from matrices."""
        return [
            f"{each.name}array" if letter == "a" and "array" not in each.name.lower() else each.name
            for each, letter in zip(self.declared, self.letters, strict=True)
        ]

    @cached_property
    def flags(self) -> dict[str, str]:
        """Letters of the flags by name."""
        found = zip(self.names, self.letters, strict=True)
        return {name: letter for name, letter in found if letter in _FLAGS}

    @cached_property
    def sizes(self) -> list[str]:
        """Integers that say how large operands are: m, n, k, kl, nrhs."""
        found = zip(self.names, self.letters, strict=True)
        kept = [name for name, letter in found if letter in "iI"]
        return [name for name in kept if not name.startswith(("ld", "inc")) and not name.lower().startswith("batch")]

    @cached_property
    def batch(self) -> str:
        """The parameter with the number of matrices; empty where there is one."""
        return next((name for name in self.names if name.lower().startswith("batch")), "")

    @cached_property
    def stem(self) -> str:
        """``gemv`` of cublasSgemvStridedBatched; the name in lower case where it is not built like that."""
        found = cblas_api.NAME.fullmatch(self.routine)
        return found[2] if found else self.routine.removeprefix("cublas").partition("_")[0].lower()

    @cached_property
    def dtype(self) -> str:
        """The dtype of most operands."""
        found = [_element(each) for each, letter in zip(self.declared, self.letters, strict=True) if letter in "pa"]
        named = [each for each in found if each]
        return max(dict.fromkeys(named), key=named.count) if named else "float32"

    @cached_property
    def operands(self) -> list[Operand]:
        found = []
        for place, letter in enumerate(self.letters):
            if letter in "par":
                found.append(self._operand(place))
        return found

    # --- what an operand is ---

    def _operand(self, place: int) -> Operand:
        name, letter = self.names[place], self.letters[place]
        behind = self.names[place + 1 : place + 3]
        ld = next((each for each in behind[:2] if each.startswith("ld")), "")
        inc = next((each for each in behind[:1] if each.startswith("inc")), "")
        parameter = CParameter(self.declared[place].type, name)
        if letter == "r":
            return Operand(parameter, letter, "(1,)", "", True)
        if not ld and not inc:
            packed = name.startswith("AP")
            plain = "(n,)" if "n" in self.sizes else "(1,)"
            return Operand(parameter, letter, "(n * (n + 1) // 2,)" if packed else plain, "", packed)
        shape = self._vector(name) if inc else self._matrix(name.removesuffix("array"))
        strides = f"(abs({inc}),)" if inc else f"(1, {ld})"
        sure = bool(self.sizes) and set(self.sizes) <= {"m", "n", "k", "kl", "ku"}
        if not self.batch:
            return Operand(parameter, letter, shape, strides, sure)
        apart = f"stride{name}" if f"stride{name}" in self.names else self._apart(shape, ld, inc)
        return Operand(parameter, letter, _behind(self.batch, shape), _behind(apart, strides), sure)

    def _vector(self, name: str) -> str:
        if "m" not in self.sizes:
            return "(n,)"
        if "mode" in self.flags:
            return "(m if mode == 'L' else n,)"
        is_first = name.startswith("x")
        if "trans" in self.flags:
            return "(n if trans == 'N' else m,)" if is_first else "(m if trans == 'N' else n,)"
        return "(m,)" if is_first else "(n,)"

    def _matrix(self, name: str) -> str:
        given = set(self.sizes)
        if {"transa", "transb"} <= set(self.flags) and name in ("A", "B"):
            rows, columns = {"A": ("m", "k"), "B": ("k", "n")}[name] if "k" in given else ("m", "n")
            return f"op(trans{name.lower()}, {rows}, {columns})"
        if "kl" in given:
            return "(kl + ku + 1, n)"
        if self.stem in _BAND:
            return "(k + 1, n)"
        if "side" in self.flags and name == "A":
            return "((m, m) if side == 'L' else (n, n))"
        if given == {"n", "k"} and "trans" in self.flags:
            return "(n, n)" if name == "C" else "op(trans, n, k)"
        if "nrhs" in given:
            return "(n, nrhs)" if name in ("B", "C") else "(n, n)"
        return "(m, n)" if "m" in given else "(n, n)"

    def _apart(self, shape: str, ld: str, inc: str) -> str:
        """Elements from one matrix or vector of a batch to the next."""
        return f"{ld} * max(1, {_size(shape, 1)})" if ld else f"max(1, {_size(shape, 0)}) * abs({inc})"

    def _live(self, operand: Operand) -> str:
        """The triangle that is read or written; empty where it is all, or a band or packed."""
        name = operand.parameter.name.removesuffix("array")
        if "uplo" not in self.flags or self.batch or self.stem in _BAND or "ld" not in operand.strides:
            return ""
        owner = "C" if "C" in self.names and "side" not in self.flags else "A"
        if name != owner:
            return ""
        return f"triangle(uplo, {'diag' if 'diag' in self.flags else repr('N')}, i, j)"

    # --- the file ---

    def lines(self) -> Iterator[str]:
        version = f"cuBLAS {cublas_api.VERSION}"
        yield f"# A first draft by kgbench new cublas {self.routine}, from what the header of {version} declares."
        yield "# TODO: compare each line with NVIDIA's documentation, and decide what the TODO comments ask."
        yield f"summary: {self.dtype} {self.stem} of BLAS, column-major  # TODO: say what it computes, one line"
        yield "kind: compute"
        yield f"category: {self._category()}  # TODO: name a word to filter by"
        types = zip(self.names, self.letters, strict=True)
        parameters = ", ".join(f"{name}: {ENTRY_TYPES[letter][0]}" for name, letter in types)
        yield f'entry: "{self.routine}({parameters}) -> None"'
        if self.routine not in ROUTINES:
            spelled = " ".join(_GROUPS.findall(self.letters))
            yield f'signature: "{spelled}"  # TODO: C does not tell a scalar from a tensor: look at each'
        yield f"dtypes: {{required: [{self.dtype}]}}"
        yield from self._variables()
        yield "arguments:"
        for operand in self.operands:
            yield from self._argument(operand)
        yield from (f'  {name}: {{value: "dtype"}}' for name, letter in self._typed() if letter == "e")
        yield from self._cases()
        yield from self._baseline()
        yield from self._reference()
        yield f"tolerance: {self._tolerance()}  # TODO: accumulate for sums of products, rounding for elementwise work"
        yield '# TODO: cost: {flops: "2 * n", bytes: "8 * n"}, never more than an honest kernel has to do'
        yield from self._doc()

    def _typed(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.letters, strict=True))

    @cached_property
    def has_matrix(self) -> bool:
        return cblas_api.has_matrix(self.letters.replace("I", "i"))

    def _category(self) -> str:
        return self.stem if self.has_matrix else "level1"

    def _variables(self) -> Iterator[str]:
        defaults = {name: _FLAGS[letter] for name, letter in self.flags.items()}
        defaults |= {name: _SCALARS.get(name, "0.6") for name, letter in self._typed() if letter in "hsdcz"}
        defaults |= {name: "1" for name in self.names if name.startswith("inc")}
        leading = [name for name in self.names if name.startswith("ld")]
        defaults |= {"pad": "0"} if leading else {}
        defaults |= {self.batch: "3"} if self.batch else {}
        defaults |= {name: "1" for name in self.sizes if name not in ("m", "n")}
        yield f"defaults: {{{', '.join(f'{name}: {value}' for name, value in defaults.items())}}}"
        derived = {name: f"max(1, {_size(self._of(place), 0)}) + pad" for place, name in self._leading()}
        derived |= {
            name: self._apart(self._of(place), self._ld(place), self._inc(place)) for place, name in self._strides()
        }
        if derived:
            yield "variables:"
            yield from (f'  {name}: "{value}"' for name, value in derived.items())

    def _leading(self) -> Iterator[tuple[int, str]]:
        """Place of the matrix and name, for every leading dimension."""
        for place, letter in enumerate(self.letters):
            if letter in "pa" and (name := self._ld(place)):
                yield place, name

    def _strides(self) -> Iterator[tuple[int, str]]:
        for place, letter in enumerate(self.letters):
            name = f"stride{self.names[place]}"
            if letter == "p" and name in self.names:
                yield place, name

    def _ld(self, place: int) -> str:
        return next((each for each in self.names[place + 1 : place + 3] if each.startswith("ld")), "")

    def _inc(self, place: int) -> str:
        return next((each for each in self.names[place + 1 : place + 2] if each.startswith("inc")), "")

    def _of(self, place: int) -> str:
        """The shape of one matrix or vector, without the batch."""
        name = self.names[place].removesuffix("array")
        return self._vector(name) if self._inc(place) else self._matrix(name)

    def _argument(self, operand: Operand) -> Iterator[str]:
        parameter = operand.parameter
        access = "write" if operand.letter == "r" else "readwrite" if parameter.is_written else "read"
        yield f"  {parameter.name}:"
        doubt = "  # TODO: C says that it may be written, not whether it is read" if access == "readwrite" else ""
        yield f"    access: {access}{doubt}"
        yield f'    shape: "{operand.shape}"' + ("" if operand.sure else "  # TODO: a guess; give its size")
        if operand.strides:
            yield f'    strides: "{operand.strides}"'
        element = _element(parameter)
        if element and element != self.dtype:
            yield f'    dtype: "{element}"'
        yield f"    passed: {'pointers' if operand.letter == 'a' else 'storage'}"
        if live := self._live(operand):
            yield f'    live: "{live}"  # TODO: what of the matrix the routine touches'
        if access != "write":
            yield '    draw: "normal()"'

    def _cases(self) -> Iterator[str]:
        dims = [name for name in self.sizes if name in ("m", "n")] or self.sizes[:1]
        others = [name for name in self.sizes if name not in dims]

        def case(*sizes: int, **more: object) -> str:
            given = {**dict(zip([*dims, *others], sizes, strict=False)), **more}
            return f"    - {{{', '.join(f'{name}: {value}' for name, value in given.items()) or 'values: default'}}}"

        yield "cases:"
        yield "  check:  # TODO: add what is awkward: NaN where nothing is read, offsets, whole numbers (exact: true)"
        yield case(*[0] * len(dims))
        yield case(*[1] * len(dims), *[1] * len(others))
        yield case(*[37, 29][: len(dims)], *[5] * len(others))
        for name, letter in self.flags.items():
            yield case(*[19, 23][: len(dims)], *[7] * len(others), **{name: _OTHER_FLAGS[letter][1]})
        for name in self.names:
            if name.startswith("inc"):
                yield case(*[33, 21][: len(dims)], *[3] * len(others), **{name: -2})
        if any(name.startswith("ld") for name in self.names):
            yield case(*[24, 17][: len(dims)], *[6] * len(others), pad=3)
        if self.sizes:
            yield "  fuzz:"
            yield "    count: 6"
            yield f"    draw: {{{', '.join(f'{name}: {{range: [1, 60]}}' for name in [*dims, *others])}}}"
        yield "  bench:  # TODO: realistic sizes; a call of at most two seconds on a CPU"
        small, large = self._bench_sizes(len(dims))
        yield "    cpu:\n  " + case(*[small] * len(dims), *[min(small, 64)] * len(others))
        yield "    gpu:\n  " + case(*[large] * len(dims), *[min(large, 64)] * len(others))

    def _bench_sizes(self, dims: int) -> tuple[int, int]:
        if dims == 1 and not any(name.startswith("ld") for name in self.names):
            return (1000, 4000) if any("AP" in name for name in self.names) else (100000, 16777216)
        return (128, 2048) if not self.batch else (64, 512)

    def _baseline(self) -> Iterator[str]:
        why = cblas_api.why_not(self.routine, self.letters) or cblas_api.lacking(self.routine, self.letters)
        if why:
            yield f'baseline: {{cuda: "cublas:{self.routine}"}}  # TODO: on a CPU nothing is timed beside it: {why}'

    def _reference(self) -> Iterator[str]:
        stem = _SAME_REFERENCE.get(self.stem, self.stem) + ("_batched" if "a" in self.letters else "")
        for module in REFERENCES:
            if stem in function_names(module):
                yield f'reference: "{module}:{stem}"'
                return
        written = [each for each in self.operands if each.parameter.is_written]
        names = {each.parameter.name: each.letter for each in written}
        answers = ", ".join(f'"{name}": {"torch.zeros(1)" if each == "r" else name}' for name, each in names.items())
        yield f"reference: |{_EDIT}give the correct result; {self.stem} has no reference, this one changes nothing"
        yield f"  def reference({', '.join(self.names)}):"
        yield f"      return {{{answers}}}"

    def _tolerance(self) -> str:
        if self.stem in ("geam", "dgmm") or not (self.has_matrix or "r" in self.letters):
            return "{rule: rounding, ulps: 2}"
        return f'{{rule: accumulate, length: "max(1, {", ".join(self.sizes)})"}}'

    def _doc(self) -> Iterator[str]:
        c = ", ".join(f"{each.type} {each.name}" for each in self.declared)
        yield "doc: |  # TODO: what it computes, what it does not read, what its flags mean, edge rules, the source"
        yield from textwrap.wrap(f"{self.routine}({c})", 118, initial_indent="  ", subsequent_indent="  ")
        yield ""
        yield "  Vectors and matrices are one-dimensional storage. Element (i, j) of a matrix A is A[i + j * lda];"
        yield "  element i of a vector x is x[i * incx], or x[(i - n + 1) * incx] for a negative increment."


def _size(shape: str, place: int) -> str:
    """One size of a shape, as short as it can be said: ``m`` of ``(m, n)``, ``op(trans, m, k)[0]``."""
    inner = shape[1:-1].rstrip(",")
    return inner.split(", ")[place] if _is_plain(shape) else f"{shape}[{place}]"


def _behind(first: str, shape: str) -> str:
    """A shape or strides with one more in front."""
    return f"({first}, {shape[1:-1].rstrip(',')})" if _is_plain(shape) else f"({first},) + {shape}"


def _is_plain(shape: str) -> bool:
    """Whether it is written as a tuple none of whose sizes has a comma in it."""
    return shape.startswith("(") and not shape.startswith("((")


def _element(parameter: CParameter) -> str:
    """Dtype of what a pointer leads to; empty where another argument says it."""
    kind = parameter.type.removeprefix("const ").partition("*")[0]
    return _ELEMENTS.get(kind, "")
