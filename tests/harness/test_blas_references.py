"""Every routine of the table: reference against OpenBLAS, over flags, increments, factors of 0 and NaN around it."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines import cublas_api, routines  # noqa: E402
from kgbench.baselines.cblas_api import NAME  # noqa: E402
from kgbench.baselines.references import cublas, cublas_vectors  # noqa: E402
from kgbench.baselines.registry import Unavailable, load_baseline  # noqa: E402

pytestmark = pytest.mark.torch
DTYPES = {"H": torch.float16, "S": torch.float32, "D": torch.float64, "C": torch.complex64, "Z": torch.complex128}
LIMITS = {"H": 2e-2, "S": 2e-5, "D": 1e-13, "C": 2e-5, "Z": 1e-13}
BATCH = 3
REFERENCES = {
    "ger": cublas_vectors.ger, "geru": cublas_vectors.ger, "gerc": cublas_vectors.gerc, "dotu": cublas_vectors.dot,
}  # fmt: skip
SIZES = {"m": 5, "n": 7, "k": 3}


def names(symbol: str) -> list[str]:
    """The routine's parameters after the handle, named as entries name them."""
    with cublas_api.TABLE.open(newline="") as file:
        declared = next(row["parameters"] for row in csv.DictReader(file) if row["symbol"] == symbol)
    found = [each.replace("[]", "").split()[-1] for each in declared.split(", ")]
    return [f"{name}array" if name in "AB" and "[]" in declared else name for name in found]


def shapes(stem: str, flags: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Logical shapes of the routine's operands, after Fortran BLAS."""
    m, n, k = SIZES.values()
    trans, side = flags.get("trans", "N"), flags.get("side", flags.get("mode", "L"))
    order = m if side == "L" else n
    if stem in ("gemv",):
        return {"A": (m, n), "x": (n if trans == "N" else m,), "y": (m if trans == "N" else n,)}
    if stem.startswith("ger"):
        return {"x": (m,), "y": (n,), "A": (m, n)}
    square = {"symv": (n, n), "syr2": (n, n), "trsv": (n, n), "sbmv": (k + 1, n), "tbmv": (k + 1, n)}
    if stem in square:
        return {"A": square[stem], "x": (n,), "y": (n,)}
    if stem == "gemm":
        a, b = (m, k), (k, n)
        return {
            "A": a if flags["transa"] == "N" else a[::-1],
            "B": b if flags["transb"] == "N" else b[::-1],
            "C": (m, n),
        }
    if stem == "geam":
        turned = {name: (m, n) if flags[f"trans{name.lower()}"] == "N" else (n, m) for name in "AB"}
        return {**turned, "C": (m, n)}
    if stem == "syrk":
        return {"A": (n, k) if trans == "N" else (k, n), "C": (n, n)}
    if stem == "dgmm":
        return {"A": (m, n), "x": (order,), "C": (m, n)}
    if stem in ("symm", "trsm"):
        return {"A": (order, order), "B": (m, n), "C": (m, n)}
    return {"x": (n,), "y": (n,)}


def used(stem: str, name: str, flags: dict[str, str], shape: tuple[int, ...]) -> Any:
    """bool, shape of the operand: what BLAS reads or writes of it."""
    rows, columns = torch.meshgrid(*(torch.arange(size) for size in shape), indexing="ij")
    uplo, unit, k = flags.get("uplo", "L"), flags.get("diag") == "U", SIZES["k"]
    if stem in ("sbmv", "tbmv"):
        inside = rows + columns >= k if uplo == "U" else rows + columns < shape[1]
        return inside & ((rows != (k if uplo == "U" else 0)) | (not unit))
    owner = {"symv": "A", "syr2": "A", "trsv": "A", "symm": "A", "trsm": "A", "syrk": "C"}.get(stem)
    if owner != name:
        return torch.ones(shape, dtype=torch.bool)
    inside = rows <= columns if uplo == "U" else rows >= columns
    return inside & ((rows != columns) | (not unit))


class Operand:
    """A matrix or vector, or a batch of them, in storage of its own with NaN around and between."""

    def __init__(self, shape: tuple[int, ...], step: int, live: Any, dtype: Any, batch: int, seed: int) -> None:
        vector = len(shape) == 1
        self.ld = step if vector else shape[0] + 2
        extent = (shape[0] - 1) * abs(step) + 1 if vector else self.ld * shape[1]
        self.stride = extent + 3
        self.storage = torch.full((batch * self.stride,), math.nan, dtype=dtype)
        strides = (abs(step),) if vector else (1, self.ld)
        self.all = self.storage.as_strided((batch, *shape), (self.stride, *strides))
        values = torch.randn((batch, *shape), generator=torch.Generator().manual_seed(seed), dtype=torch.complex128)
        values = (values if dtype.is_complex else values.real).to(dtype) / (2 if dtype == torch.float16 else 1)
        if not vector and shape[0] == shape[1]:
            # Triangles that are solved with are well conditioned.
            values = values / 8 + 2 * torch.eye(shape[0])
        self.live = live
        self.all.copy_(torch.where(live, values.to(dtype), torch.full_like(self.all, math.nan)))

    def mutator(self) -> None:
        self.all.copy_(torch.full_like(self.all, math.nan))

    @property
    def addresses(self) -> Any:
        size = self.stride * self.storage.element_size()
        return torch.tensor([self.storage.data_ptr() + i * size for i in range(len(self.all))])


def flag_sets(symbol: str, stem: str, parameters: list[str]) -> Iterator[dict[str, str]]:
    choices = {"T": "NTC", "U": "UL", "L": "LR", "D": "NU"}
    flags = {
        name: choices[letter]
        for name, letter in zip(parameters, routines.letters(symbol), strict=True)
        if letter in choices
    }
    if stem == "syrk" and symbol[6] in "CZ":
        flags["trans"] = "NT"
    for values in itertools.product(*flags.values()):
        yield dict(zip(flags, values, strict=True))


@pytest.mark.parametrize("symbol", [name for name in routines.ROUTINES if not name.endswith("_64")])
def test_openblas_gives_what_the_reference_says(symbol: str) -> None:
    try:
        call = load_baseline(f"openblas:{symbol}", "cpu").call
    except Unavailable as reason:
        pytest.skip(str(reason))
    stem, parameters = NAME.fullmatch(symbol)[2], names(symbol)
    batched = "batchCount" in parameters
    suffix = "_batched" if "Aarray" in parameters else ""
    home = cublas if hasattr(cublas, stem) else cublas_vectors
    reference = REFERENCES.get(stem) or getattr(home, stem + suffix)
    factors: list[tuple[float, float]] = [(0.5, -2.0), (1.0, 0.0), (0.0, 2.0), (0.0, 0.0)]
    steps = [(1, 1), (2, -3), (-1, 2)] if "incx" in parameters else [(1, 1)]
    for flags, (alpha, beta), (incx, incy) in itertools.product(flag_sets(symbol, stem, parameters), factors, steps):
        if (incx < 0 and stem in ("scal", "asum")) or ("alpha" not in parameters and alpha != 0.5):
            continue
        case = {**flags, "alpha": alpha, "beta": beta, "incx": incx, "incy": incy}
        compare(symbol, stem, parameters, call, reference, case, BATCH if batched else 1, flags)


def compare(
    symbol: str, stem: str, parameters: list[str], call: Any, reference: Any, case: dict[str, Any], batch: int,
    flags: dict[str, str],
) -> None:  # fmt: skip
    dtype, is_complex = DTYPES[symbol[6]], symbol[6] in "CZ"
    wanted_shapes = shapes(stem, flags)
    operands = {
        name: Operand(
            shape,
            {"x": case["incx"], "y": case["incy"]}.get(name, 1),
            used(stem, name, flags, shape) if len(shape) == 2 else torch.ones(shape, dtype=torch.bool),
            dtype,
            batch,
            sum(map(ord, name)),
        )
        for name, shape in wanted_shapes.items()
    }
    if stem == "dgmm" or (case["beta"] == 0 and "beta" in parameters and stem != "geam"):
        operands["y" if "y" in operands else "C"].mutator()
    if case["alpha"] == 0 and "alpha" in parameters:
        for name in {"geam": "A", "scal": "", "axpy": "x", "ger": "xy", "geru": "xy", "gerc": "xy", "syr2": "xy",
                     "trsm": "A", "gemv": "Ax", "symv": "Ax", "sbmv": "Ax", "syrk": "A"}.get(stem, "AB"):  # fmt: skip
            operands[name].mutator()
    if stem == "geam" and case["beta"] == 0:
        operands["B"].mutator()
    if is_complex:
        case = {**case, "alpha": case["alpha"] * (1 + 0.5j), "beta": case["beta"] * (0.5 - 1j)}
    result = torch.full((1,), math.nan, dtype=dtype)
    given: list[Any] = []
    for name in parameters:
        plain = name.removesuffix("array")
        if name.endswith("array"):
            given.append(operands[plain].addresses)
        elif plain in operands:
            given.append(operands[plain].storage)
        elif name.startswith("ld"):
            given.append(operands[name[2:].upper()].ld)
        elif name.startswith("stride"):
            given.append(operands[name.removeprefix("stride")].stride)
        elif name.endswith("type"):
            given.append(dtype)
        else:
            given.append({**SIZES, **case, "batchCount": batch, "result": result}[name])
    wide = torch.complex128 if is_complex else torch.float64
    views = {name: (each.all if batch > 1 else each.all[0]).to(wide, copy=True) for name, each in operands.items()}
    suffix = "array" if any(name.endswith("array") for name in parameters) else ""
    expected = reference(**{name + suffix: view for name, view in views.items()}, **SIZES, **case)
    before = {name: each.storage.clone() for name, each in operands.items()}
    call(*given)
    for name, wanted in expected.items():
        if name == "result":
            got, live = result.to(wide), torch.ones(1, dtype=torch.bool)
        else:
            operand = operands[name.removesuffix("array")]
            got, live = (operand.all if batch > 1 else operand.all[0]).to(wide), operand.live.expand(wanted.value.shape)
        assert bool(torch.isfinite(wanted.value[live]).all()), (symbol, name, case)
        assert bool(torch.isfinite(wanted.magnitude[live]).all()) if wanted.magnitude is not None else True
        limit = LIMITS[symbol[6]]
        torch.testing.assert_close(
            got[live], wanted.value[live], rtol=limit, atol=10 * limit, msg=lambda text: f"{symbol} {case}: {text}"
        )
    for name, operand in operands.items():
        touched = torch.zeros(operand.storage.shape, dtype=torch.bool)
        if name in expected or f"{name}array" in expected:
            touched.as_strided(operand.all.shape, operand.all.stride())[:] = operand.live
        same = (operand.storage == before[name]) | (operand.storage.isnan() & before[name].isnan())
        assert bool((same | touched).all()), (symbol, name, case)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_a_triangular_system_is_solved_across_blocks(lower: bool, dtype: Any) -> None:
    size = 2 * cublas.BLOCK + 5
    random = torch.Generator().manual_seed(3)
    keep = torch.tril if lower else torch.triu
    matrix = keep(torch.randn(2, size, size, dtype=dtype, generator=random)) / size
    matrix = matrix + 2 * torch.eye(size, dtype=dtype)
    wanted = torch.randn(2, size, 3, dtype=dtype, generator=random)
    found = cublas.substituted(matrix, matrix @ wanted, lower)
    assert float((found - wanted).abs().max()) < 1e-13
    integers = keep(torch.randint(-1, 2, (size, size), generator=random)).to(dtype)
    # A quotient that is an integer is found without an inverse of its divisor.
    integers = (integers * (torch.rand(size, size, generator=random) < 0.03)).fill_diagonal_(3)
    wanted = torch.randint(-9, 10, (size, 1), generator=random).to(dtype)
    assert torch.equal(cublas.substituted(integers.conj(), integers.conj() @ wanted, lower), wanted)
