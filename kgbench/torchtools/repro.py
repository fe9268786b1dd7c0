"""``python -m kgbench.torchtools.repro``: writes a short file that shows a failure of an installed package.

Standard input is a JSON object (``Asked``); standard output gets a JSON line ``{"script": text}``, or ``{"why":
words}`` if no file of about ten lines shows the failure. The package's code runs in this process, as it would in the
file.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.devices import nvidia_gpus
from kgbench.harness.machine.processes import own_lines
from kgbench.harness.machine.settings import Job
from kgbench.harness.referee.seeds import Seeds
from kgbench.harness.verdict.inputs import make_inputs
from kgbench.harness.wire.device import GPU
from kgbench.problem.cases import BoundCase, bind, expand_cases
from kgbench.problem.model import plain_type
from kgbench.problem.registry import load_problem

DRAWS: Final = 8
"""Number of draws of the failing call, since only some values may be wrong."""
MOST_INLINE: Final = 512
"""Maximum number of values that a file spells out."""
MOST_ELEMENTS: Final = 4
"""Maximum number of wrong elements of a draw that are tried alone."""
MANY_ULPS: Final = 8
"""Limit in units of the dtype's last place, used where PyTorch's wider limit shows no difference."""


@dataclass(frozen=True)
class Asked:
    """One failing call of a stored result, and how the package is called. JSON-ready data only."""

    problem: str
    """Path of the problem's file."""
    overload: str
    case: str
    seed: str
    """The run's seed; empty if unknown, and then its fuzz cases cannot be drawn again."""
    model: str
    sample: int
    device: str
    interpreted: bool
    operator: str
    """The operator that gives the correct result, such as ``softmax.int``."""
    first: str
    """Text that imports the package."""
    call: str
    """An expression in the operator's parameters, or a function that takes them."""
    is_function: bool
    raises: str
    """Name of the exception that the call raises; empty if its result is wrong."""
    dtype: str
    """The dtype of the wrong output."""
    returns_tensor: bool
    header: str
    """A line that says what the file shows."""


class Arguments:
    """One drawn call, and the text that makes its arguments."""

    def __init__(self, bound: BoundCase, values: dict[str, Any], device: str) -> None:
        self.bound = bound
        self.values = values
        self.device = device
        self.where = f', device="{device}"' if device != "cpu" else ""

    @property
    def tensors(self) -> list[torch.Tensor]:
        found = (each if isinstance(each, list) else [each] for each in self.values.values())
        return [each for values in found for each in values if isinstance(each, torch.Tensor)]

    def inline(self) -> Iterator[str]:
        """A line per parameter, with every number spelled out."""
        return (self._line(name, self._inline) for name in self.values)

    def seeded(self) -> Iterator[str]:
        """A line per parameter, with values from torch's generator."""
        yield "torch.manual_seed(0)"
        yield from (self._line(name, self._random) for name in self.values)

    def at(self, index: tuple[int, ...]) -> Arguments | None:
        """The call with this element alone; None if the tensors do not all have one shape."""
        shapes = {tuple(each.shape) for each in self.tensors}
        if len(shapes) != 1 or len(next(iter(shapes))) != len(index):
            return None
        one = {name: value[index][None].clone() if isinstance(value, torch.Tensor) else value
               for name, value in self.values.items()}  # fmt: skip
        return Arguments(self.bound, one, self.device)

    def _line(self, name: str, tensor: Any) -> str:
        value, kind = self.values[name], next(each.type for each in self.bound.arguments if each.name == name)
        if isinstance(value, torch.Tensor):
            return f"{name} = {tensor(value)}"
        if isinstance(value, list) and any(isinstance(each, torch.Tensor) for each in value):
            return f"{name} = [{', '.join('None' if each is None else tensor(each) for each in value)}]"
        if value is not None and plain_type(kind) in ("dtype", "layout", "memory_format"):
            return f"{name} = torch.{value}"
        return f"{name} = {value!r}"

    def _inline(self, value: torch.Tensor) -> str:
        made = f"torch.tensor({value.tolist()!r}, dtype={value.dtype}{self.where})"
        return self._strided(value, f".copy_({made})") or made

    def _random(self, value: torch.Tensor) -> str:
        shape, options = list(value.shape), f"dtype={value.dtype}{self.where}"
        if value.is_floating_point() or value.is_complex():
            return self._strided(value, ".normal_()") or f"torch.randn({shape}, {options})"
        high = 2 if value.dtype is torch.bool else max(2, int(value.max()) + 1) if value.numel() else 2
        low = 0 if value.dtype is torch.bool or not value.numel() else min(0, int(value.min()))
        return f"torch.randint({low}, {high}, {shape}{self.where}).to({value.dtype})"

    def _strided(self, value: torch.Tensor, filled: str) -> str:
        """Text of a tensor whose strides are not row-major; empty for a row-major one."""
        if value.is_contiguous():
            return ""
        shape, strides = list(value.shape), list(value.stride())
        return f"torch.empty_strided({shape}, {strides}, dtype={value.dtype}{self.where}){filled}"


def scripts(asked: Asked, arguments: Arguments, lines: Iterator[str], *, eager: bool = False) -> Iterator[str]:
    """The file with these arguments: with PyTorch's own limits, then with narrower ones.

    ``eager``: with PyTorch's operator in place of the package's, to find the elements that are correct in PyTorch.
    """
    body = list(lines)
    special = [name for name in ("inf", "nan") if any(name in line.replace("nan_", "") for line in body)]
    names = [("" if not each.keyword_only else f"{each.name}=") + each.name for each in arguments.bound.arguments]
    call = f"{asked.call}({', '.join(names)})" if asked.is_function else asked.call
    operator = f"torch.ops.aten.{asked.operator}"
    wide = ", ".join(_wide(each, arguments) for each in names)
    # An infinity is correct where the float64 number is too large for the dtype.
    rounded = "want.to(got.dtype)" if asked.returns_tensor else "want"
    environment = ["import os; os.environ['TRITON_INTERPRET'] = '1'"] if asked.interpreted else []
    for rtol, atol in _limits(asked.dtype):
        yield "\n".join(
            (
                f"# {asked.header}",
                *environment,
                asked.first.strip(),
                *([f"from math import {', '.join(special)}"] if special else []),
                *body,
                f"want = {operator}({wide})",
                f"got = {f'{operator}({chr(44).join(names)})' if eager else call}",
                'print("got", got, "\\nexpected", want)',
                f"torch.testing.assert_close(got, {rounded}, rtol={rtol:g}, atol={atol:g}, equal_nan=True, "
                "check_dtype=False, check_stride=False)",
                "",
            )
        )


def _wide(name: str, arguments: Arguments) -> str:
    """An argument for the reference: in float64, and a copy, since the kernel may write to it."""
    keyword, equals, own = name.rpartition("=")
    value = arguments.values[own]
    several = isinstance(value, list) and any(isinstance(each, torch.Tensor) for each in value)
    text = f"[{_copy('each', own)} for each in {own}]" if several else own
    if isinstance(value, torch.Tensor):
        text = _copy(own, own, value)
    return f"{keyword}{equals}{text}"


def _copy(name: str, own: str, value: torch.Tensor | None = None) -> str:
    if value is None:
        return f"None if {name} is None else {name}.clone()"
    if value.is_complex():
        return f"{name}.to(torch.complex128)"
    return f"{name}.double()" if value.is_floating_point() and value.dtype != torch.float64 else f"{name}.clone()"


def _limits(dtype: str) -> list[tuple[float, float]]:
    """(rtol, atol) of ``torch.testing.assert_close`` by default, then of a few units in the last place."""
    found = getattr(torch, dtype, torch.float32)
    if not (found.is_floating_point or found.is_complex):
        return [(0.0, 0.0)]
    usual = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5)}
    info = torch.finfo(found)
    return [usual.get(found, (1e-7, 1e-7)), (MANY_ULPS * info.eps, float(info.tiny))]


def shows(script: str, asked: Asked) -> tuple[bool, dict[str, Any]]:
    """Whether the file fails as intended, and the values that it computed."""
    names: dict[str, Any] = {}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(script, "repro.py", "exec"), names)
    except Exception as error:  # whatever the package raises
        expected = asked.raises or "AssertionError"
        return type(error).__name__ == expected and ("got" in names or bool(asked.raises)), names
    return False, names


def wrong_elements(asked: Asked, drawn: Arguments) -> list[tuple[int, ...]]:
    """Elements that are correct in PyTorch in this dtype and wrong in the package."""
    found = []
    for eager in (False, True):
        script = next(scripts(asked, drawn, drawn.inline(), eager=eager))
        _, names = shows(script, asked)
        got, want = names.get("got"), names.get("want")
        if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor) or got.shape != want.shape:
            return []
        _, atol = _limits(asked.dtype)[0]
        rounded = want.to(got.dtype)
        rtol = 0.0 if not got.is_floating_point() else MANY_ULPS * torch.finfo(got.dtype).eps
        found.append(~torch.isclose(got, rounded, rtol=rtol, atol=min(atol, 1e-30), equal_nan=True))
    wrong, eager_wrong = found
    return [tuple(each) for each in (wrong & ~eager_wrong).nonzero()[:MOST_ELEMENTS].tolist()]


def attempts(asked: Asked) -> Iterator[str]:
    """Files that may show the failure, the shortest first."""
    problem = load_problem(Path(asked.problem))
    overload = next(each for each in problem.overloads if each.name == asked.overload)
    device = torch.device(asked.device)
    seeds = Seeds(asked.seed, Job(problem, asked.model, asked.sample), device)
    memory_gb = 1e9 if device.type == "cpu" else GPU.memory_bytes(device) / 1e9
    cases = expand_cases(overload, DeviceKind(device.type), memory_gb, seeds.shared("cases"))
    case = next((each for each in cases if each.id == asked.case), None)
    if case is None:
        return
    bound = bind(overload, case)
    for number in range(DRAWS):
        inputs = make_inputs(overload, bound, torch.Generator(device).manual_seed(number))
        drawn = Arguments(bound, inputs.stored_arguments(), asked.device)
        for index in wrong_elements(asked, drawn):
            if (one := drawn.at(index)) is not None:
                yield from scripts(asked, one, one.inline())
        if number == 0:
            yield from scripts(asked, drawn, drawn.seeded())
        if sum(prod(each.shape) for each in drawn.tensors) <= MOST_INLINE:
            yield from scripts(asked, drawn, drawn.inline())


def main() -> None:
    lines = own_lines()
    asked = Asked(**json.loads(sys.stdin.read()))
    if asked.interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    found, why = None, "no file of some lines shows it: the call is large, or only some values are wrong"
    if asked.device == DeviceKind.CUDA and not nvidia_gpus():
        why = "the run was made on a GPU, and none is visible here; ask for the file there"
    else:
        found = next((each for each in attempts(asked) if shows(each, asked)[0]), None)
    print(json.dumps({"script": found} if found else {"why": why}), file=lines, flush=True)


if __name__ == "__main__":
    main()
