"""What the baselines promise before any library is loaded: targets, routine rows, status names, vLLM's declarations."""

from __future__ import annotations

import csv
import ctypes
import re
import struct
from pathlib import Path

import pytest

from kgbench.baselines import cublas_api, routines
from kgbench.baselines.registry import load_baseline, load_function
from kgbench.problem import blas
from kgbench.problem.registry import Registry, load_problem

CUBLAS = [path for path in Registry().paths.values() if path.parent.name == "cublas"]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (0, "CUBLAS_STATUS_SUCCESS"),
        (1, "CUBLAS_STATUS_NOT_INITIALIZED"),
        (3, "CUBLAS_STATUS_ALLOC_FAILED"),
        (7, "CUBLAS_STATUS_INVALID_VALUE"),
        (8, "CUBLAS_STATUS_ARCH_MISMATCH"),
        (11, "CUBLAS_STATUS_MAPPING_ERROR"),
        (13, "CUBLAS_STATUS_EXECUTION_FAILED"),
        (14, "CUBLAS_STATUS_INTERNAL_ERROR"),
        (15, "CUBLAS_STATUS_NOT_SUPPORTED"),
        (16, "CUBLAS_STATUS_LICENSE_ERROR"),
        (99, "unknown status 99"),
    ],
)
def test_every_status_has_its_name(status: int, name: str) -> None:
    assert routines.status_name(status) == name


@pytest.mark.parametrize(("number", "text"), [(130100, "13.1.0"), (120805, "12.8.5")])
def test_version_is_spelled_as_people_know_it(number: int, text: str) -> None:
    assert routines.version_text(number) == text


def test_every_routine_row_uses_known_letters() -> None:
    for name in routines.ROUTINES:
        assert set(routines.letters(name)) <= set(blas.LETTERS), name


C_TYPES = {
    "cublasOperation_t": "T", "cublasFillMode_t": "U", "cublasSideMode_t": "L", "cublasDiagType_t": "D", "int": "i",
    "int64_t": "I", "long long int": "l", "cudaDataType": "e",
}  # fmt: skip
C_ELEMENTS = {"__half": "h", "float": "s", "double": "d", "cuComplex": "c", "cuDoubleComplex": "z", "void": "any"}


def declared(symbol: str, parameters: str) -> str:
    """The letters that a declaration in NVIDIA's header asks for, from C's types alone."""
    found = []
    for parameter in parameters.split(", "):
        written = parameter.removeprefix("const ").replace("* const ", "** ").replace("[]", "")
        kind, name = written.rsplit(" ", 1)
        if kind in C_TYPES:
            found.append(C_TYPES[kind])
            continue
        element = C_ELEMENTS[kind.rstrip("*")]
        assert element in (symbol[len("cublas")].lower(), "any"), f"{symbol}: {parameter}"
        is_array = kind.endswith("**")
        found.append("a" if is_array else element if name in ("alpha", "beta") else "r" if name == "result" else "p")
    return "".join(found)


def header() -> dict[str, str]:
    """The parameters of every routine as the header has them, those with 64-bit integers included."""
    with cublas_api.TABLE.open(newline="") as file:
        plain = {row["symbol"]: row["parameters"] for row in csv.DictReader(file)}
    wide = {f"{symbol}_64": re.sub(r"(^|, )int ", r"\1int64_t ", text) for symbol, text in plain.items()}
    return {**wide, **plain}


def test_every_routine_is_declared_so_in_the_header_of_cublas() -> None:
    table = header()
    assert {name: declared(name, table[name]) for name in routines.ROUTINES} == routines.ROUTINES


@pytest.mark.parametrize(
    ("symbol", "letters"),
    [
        ("cublasSgemm_v2", "TTiiispipispi"),
        ("cublasCgemvBatched_64", "TIIcaIaIcaII"),
        ("cublasDtrsmBatched", "LUTDiidaiaii"),
        ("cublasHgemmStridedBatched", "TTiiihpilpilhpili"),
        ("cublasCsyrkEx", "UTiicpeicpei"),
        ("cublasZdotc_v2", "ipipir"),
    ],
)
def test_the_header_is_read_right(symbol: str, letters: str) -> None:
    assert declared(symbol, header()[symbol]) == letters


@pytest.mark.parametrize("path", CUBLAS, ids=lambda path: path.stem)
def test_a_problem_has_the_arguments_of_its_routine(path: Path) -> None:
    """Names, order and types are C's; what C may write, and nothing else, is written."""
    parameters, overload = header()[path.stem].split(", "), load_problem(path).overloads[0]
    target = overload.baseline["cuda"].removeprefix("cublas:")
    letters = routines.letters(target)
    names = [parameter.replace("[]", "").split()[-1] for parameter in parameters]
    names = [
        f"{name}array" if name in "AB" and "[]" in written else name
        for name, written in zip(names, parameters, strict=True)
    ]
    assert [(each.name, each.type) for each in overload.signature.parameters] == [
        (name, blas.ENTRY_TYPES[letter][0]) for name, letter in zip(names, letters, strict=True)
    ]
    written = {each.name for each in overload.arguments if getattr(each, "access", "read") != "read"}
    pointers = zip(names, parameters, letters, strict=True)
    assert written == {
        name for name, declared, letter in pointers if letter in "par" and not declared.startswith("const ")
    }
    assert blas.split(target)[0] == path.stem
    assert overload.baseline == {"cuda": f"cublas:{target}", "cpu": f"openblas:{target}"}


def test_a_routine_without_a_row_names_the_table() -> None:
    with pytest.raises(ValueError, match="add its row to FAMILIES"):
        routines.letters("cublasXgemm")


def test_scalars_travel_through_their_buffers() -> None:
    real, pair = routines.real_scalar(ctypes.c_float), routines.complex_scalar(ctypes.c_double)
    assert ctypes.c_float.from_address(real(-2.5)).value == -2.5
    assert list((ctypes.c_double * 2).from_address(pair(1.5 - 3j))) == [1.5, -3.0]
    assert struct.unpack("<e", ctypes.string_at(routines.half_scalar()(-0.625), 2)) == (-0.625,)


def test_each_scalar_argument_has_a_buffer_of_its_own() -> None:
    alpha, beta = routines.real_scalar(ctypes.c_float), routines.real_scalar(ctypes.c_float)
    first, second = alpha(1.0), beta(2.0)
    assert ctypes.c_float.from_address(first).value == 1.0
    assert ctypes.c_float.from_address(second).value == 2.0


@pytest.mark.parametrize("target", ["", "softmax", "aten:", "cublas"])
def test_a_target_without_a_name_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="expected SOURCE:NAME"):
        load_baseline(target, "cpu")


def test_an_unknown_device_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of cuda, cpu"):
        load_baseline("aten:mm", "tpu")


def test_a_fallback_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="no module"):
        load_function("kgbench.baselines.nowhere:f")
    with pytest.raises(ValueError, match="has no function 'f'"):
        load_function("kgbench.baselines.routines:f")
    with pytest.raises(ValueError, match="expected a function"):
        load_function("kgbench.baselines.routines:STATUS")
