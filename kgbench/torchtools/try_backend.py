"""Runs a model without and with a package that `kgbench export` wrote, and compares.

``python -m kgbench.torchtools.try_backend``: standard input is JSON, the fields of ``Request``; standard output gets
one JSON line, ``{"failed": …}`` if nothing could be run.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.core.text import told
from kgbench.harness.candidate.interpreter.patch import INTERPRETER, patch
from kgbench.harness.machine.processes import own_lines
from kgbench.problem.calls import Call, TensorLike, TorchName, format_call
from kgbench.torchtools.backend_models import Built, NoModel, build
from kgbench.torchtools.backend_speed import speed, speed_recorded

FACTOR: Final = 2.0
"""Allowed ratio of two errors against float64: the model's with the kernels, and its own without them."""
EPSILONS: Final = 4.0
"""Further allowed error, in units of the dtype's rounding of an output's root mean square."""


@dataclass(frozen=True)
class Request:
    """The request."""

    folder: str
    """Folder of the package, which need not be installed."""
    model: str
    settings: dict[str, Any]
    device: str
    dtype: str
    batch: int
    tokens: int
    seed: int
    gradients: bool
    repeats: int
    """Timed calls on each side."""
    compile: str
    """A backend of ``torch.compile``; empty without."""
    refused: bool
    """List the calls that the guards refused."""


Values = dict[str, torch.Tensor]
"""Outputs, and gradients where asked for, by name."""


def run(request: Request) -> dict[str, Any]:
    """JSON-ready: see ``docs/backend.md``. Raises NoModel."""
    backend = _imported(Path(request.folder))
    device, dtype = torch.device(request.device), getattr(torch, request.dtype)
    torch.manual_seed(request.seed)
    model, arguments, keywords = build(request.model, request.settings, request.batch, request.tokens)
    built = (model.eval().to(device, dtype), *_moved((arguments, keywords), device, dtype))
    calls = Counter[tuple[str, str]]()
    if request.refused:
        backend.watch(functools.partial(_noted, calls))
    without = _values(built, request)
    with backend.enabled():
        compiled = (torch.compile(model, backend=request.compile), *built[1:]) if request.compile else built
        found = _values(compiled, request)
        counted, absent = backend.calls(), backend.absent()
        backend.watch(None)
        if request.compile:
            _values(compiled, request)  # what was compiled is there now
            counted = _difference(backend.calls(), counted)
    exact, why = _in_float64(built, request)
    table = json.loads((Path(backend.__file__).parent / "table.json").read_text(encoding="utf-8"))
    compared = functools.partial(_compared, without, exact=exact, dtype=dtype)
    whole = recorded = None
    if not table["device"]["interpreted"] and request.repeats:
        whole = _speed(built, compiled, backend, request)
        recorded = _speed_recorded(built, backend, request, compared)
    return {
        "model": request.model, "device": request.device, "dtype": request.dtype,
        "parameters": sum(each.numel() for each in model.parameters()),
        "interpreted": table["device"]["interpreted"], "gradients": request.gradients, "compile": request.compile,
        "calls": counted, "absent": absent, "compared": compared(found), "not_compared": why,
        "speed": whole, "speed_recorded": recorded, "refused": _trace(calls),
    }  # fmt: skip


def _imported(folder: Path) -> Any:
    """The package. If it needs Triton's interpreter, that is corrected as it was when the kernels were judged."""
    package = next((path.parent for path in sorted(folder.glob("*/table.json"))), None)
    if package is None:
        raise NoModel(f"{folder} holds no package of kgbench export: it has no */table.json")
    device = json.loads((package / "table.json").read_text(encoding="utf-8"))["device"]
    if device["interpreted"]:
        os.environ["TRITON_INTERPRET"] = "1"
        importlib.import_module(INTERPRETER)
        patch()
    sys.path.insert(0, str(folder.resolve()))
    return importlib.import_module(package.name)


def _moved(values: Any, device: torch.device, dtype: torch.dtype) -> Any:
    def moved(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device, dtype if value.is_floating_point() else None)

    return tree_map(moved, values)


def _values(built: Built, request: Request) -> Values:
    """The values of one call, with the same random numbers each time."""
    model, arguments, keywords = built
    torch.manual_seed(request.seed)
    model.zero_grad(set_to_none=True)
    with contextlib.nullcontext() if request.gradients else torch.no_grad():
        outputs = _outputs(model(*arguments, **keywords))
        if request.gradients:
            floating = [each for each in outputs.values() if each.is_floating_point()]
            torch.stack([each.float().square().mean() for each in floating if each.requires_grad]).sum().backward()  # type: ignore[no-untyped-call]
    found = {name: each.detach().clone() for name, each in outputs.items()}
    if request.gradients:
        named = ((name.removeprefix("_orig_mod."), each.grad) for name, each in model.named_parameters())
        found |= {f"gradient of {name}": grad.clone() for name, grad in named if grad is not None}
    return found


def _outputs(result: Any) -> Values:
    """A model's tensors by name. An output object of transformers is taken as a dictionary."""
    leaves = tree_leaves(dict(result.items()) if hasattr(result, "items") else result)
    tensors = [each for each in leaves if isinstance(each, torch.Tensor)]
    return {f"output {number}": each for number, each in enumerate(tensors)}


def _in_float64(built: Built, request: Request) -> tuple[Values, str]:
    """The reference in float64; empty, with the reason, if the model does not run in float64."""
    model, arguments, keywords = built
    device = torch.device(request.device)
    try:
        exact = (copy.deepcopy(model).double(), *_moved((arguments, keywords), device, torch.float64))
        return _values(exact, request), ""
    except Exception as error:  # whatever a model does
        return {}, f"the model does not run in float64: {type(error).__name__}: {told(error, 200)}"


def _compared(without: Values, found: Values, exact: Values, dtype: torch.dtype) -> list[dict[str, Any]]:
    """Per output: the root mean square errors against float64 without and with the kernels, and whether the second is
    allowed.
    """
    rows = []
    for name in without:
        one, other, right = without[name], found.get(name), exact.get(name)
        if other is None or other.shape != one.shape:
            rows.append({"name": name, "ok": False, "why": "missing, or of another shape, with the kernels"})
        elif not one.is_floating_point():
            rows.append({"name": name, "ok": bool(torch.equal(one, other)), "why": "whole numbers, compared exactly"})
        elif right is not None:
            rows.append(_row(name, one.double(), other.double(), right, dtype))
    return rows


def _row(name: str, one: torch.Tensor, other: torch.Tensor, right: torch.Tensor, dtype: torch.dtype) -> dict[str, Any]:
    same = bool(torch.equal(torch.isfinite(one), torch.isfinite(other)))
    finite = torch.isfinite(one) & torch.isfinite(other) & torch.isfinite(right)
    scale, before, after = (_rms(each[finite]) for each in (right, one - right, other - right))
    limit = FACTOR * before + EPSILONS * torch.finfo(dtype).eps * scale
    difference = (one - other)[finite].abs()
    return {
        "name": name, "ok": same and after <= limit, "why": "" if same else "not finite in other places",
        "rms": scale, "rms_error_without": before, "rms_error_with": after, "limit": limit,
        "largest_difference": float(difference.max()) if difference.numel() else 0.0,
    }  # fmt: skip


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


def _speed(built: Built, compiled: Built, backend: Any, request: Request) -> dict[str, float]:
    """Medians in milliseconds of whole calls."""
    sides = {"without": built, "with": compiled}
    return speed(lambda side: _values(sides[side], request), backend.enabled, request.repeats, request.device)


def _speed_recorded(
    built: Built, backend: Any, request: Request, compared: Callable[[Values], list[dict[str, Any]]]
) -> dict[str, Any] | None:
    """The same for the device's work alone, with whether the outputs agree; None where this is not asked."""
    if not request.device.startswith("cuda") or request.gradients or request.compile:
        return None
    model, arguments, keywords = built

    def work(side: str) -> Values:
        with torch.no_grad():
            return _outputs(model(*arguments, **keywords))

    found, results = speed_recorded(work, backend.enabled, request.repeats, request.device)
    return {**found, "ok": all(row["ok"] for row in compared(results["with"]))} if results else found


def _difference(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The counts between two moments."""
    found = {}
    for name, row in after.items():
        library = next(key for key in row if key not in ("kernel", "why"))
        why = Counter(row["why"])
        why.subtract(before[name]["why"])
        counts = {key: row[key] - before[name][key] for key in ("kernel", library)}
        found[name] = {**counts, "why": {words: count for words, count in why.items() if count}}
    return found


# --- calls that were left to the library ---


def _noted(calls: Counter[tuple[str, str]], operator: Any, values: Sequence[Any], answer: Any) -> None:
    """Count a call of ATen that a guard refused. A suite cannot express a number in a tensor's place: not counted."""
    parameters = operator.parameters
    if (
        operator.source != "aten"
        or not answer.unjudged
        or any(
            each.type.startswith("Tensor") and not isinstance(value, torch.Tensor | None)
            for each, value in zip(parameters, values, strict=True)
        )
    ):
        return
    pairs = [(each, _written(value)) for each, value in zip(parameters, values, strict=True)]
    args = tuple(value for each, value in pairs if not each.keyword_only)
    named = {each.name: value for each, value in pairs if each.keyword_only}
    name = operator.name.replace("::", ".")
    calls[name if name.count(".") > 1 else f"{name}.default", format_call(Call(args, named))] += 1


def _written(value: Any) -> Any:
    """A value in the trace format's types."""
    if isinstance(value, torch.Tensor):
        strides = None if value.is_contiguous() else value.stride()
        return TensorLike(tuple(value.shape), str(value.dtype).removeprefix("torch."), strides)
    if isinstance(value, (list, tuple)):
        return [_written(each) for each in value]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return TorchName(str(value).removeprefix("torch."))
    return value


def _trace(calls: Counter[tuple[str, str]]) -> str:
    """A trace file's text, for ``--suite trace:FILE``."""
    lines = []
    for operator in dict.fromkeys(operator for operator, _ in calls):
        lines.append(f"Operator: {operator}")
        lines += [f"cnt: {count}, {call}" for (name, call), count in calls.items() if name == operator]
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    answers = own_lines()
    try:
        answer = run(Request(**json.load(sys.stdin)))
    except (NoModel, RuntimeError) as error:
        answer = {"failed": told(error), "usage": isinstance(error, NoModel)}
    print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
