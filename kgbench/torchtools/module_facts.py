"""``python -m kgbench.torchtools.module_facts``: the calls of modules, found without any data.

Standard input is a JSON list of files; standard output gets a JSON line for each: ``{"path", "complaint"}``, or with an
empty complaint ``call`` (in the trace format, ``$batch`` for the batch size), ``parameters`` (``[name, type]``),
``batch`` (the global that holds it), ``own`` (its value), ``sizes`` (other batch sizes that work), ``halved`` (half of
its own works, too), ``elements`` (of inputs and outputs together, by batch size) and ``doc``. Files run on the device
``meta``, where tensors have no data.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.harness.machine.processes import own_lines
from kgbench.harness.referee import compiler
from kgbench.harness.verdict.modules.handing import encoded
from kgbench.harness.verdict.modules.trusted import ModuleError, flat, run_file
from kgbench.problem.calls import Call, TensorLike, format_call
from kgbench.problem.modules import TRUSTED_ENTRY, ModuleSource, assigned_name

BATCH_NAMES: Final = ("batch_size", "batch", "BATCH_SIZE")
"""Names of globals that hold the batch size."""
OTHER_SIZES: Final = (1, 2, 3, 5)
"""Batch sizes that are tried beside the file's own."""
FORWARD_S: Final = 5
"""Seconds that a forward without data may take; LSTMs run step by step on ``meta``."""
_TYPES: Final = {bool: "bool", int: "int", float: "float", str: "str"}
_MOST_WORDS: Final = 300
"""Maximum length of a reported error, in characters."""


def main() -> None:
    # A file's output must not be mistaken for the answers.
    lines = own_lines()
    compiler.put_off()
    for path in json.loads(sys.stdin.read()):
        print(json.dumps({"path": path, **facts_of(Path(path))}), file=lines, flush=True)


def facts_of(path: Path) -> dict[str, Any]:
    """The answer for one file, without its path."""
    try:
        return {"complaint": "", **_facts(ModuleSource(path.name, path.read_text(encoding="utf-8")))}
    except (ModuleError, OSError, UnicodeDecodeError) as error:
        return {"complaint": str(error)[:_MOST_WORDS]}
    except Exception as error:  # whatever a file raises is a complaint about it
        words = f"{path.name}: {type(error).__name__}: {error}".splitlines()[0]
        return {"complaint": words[:_MOST_WORDS]}


def _facts(source: ModuleSource) -> dict[str, Any]:
    own = _Tried.of(source, None)
    if [str(encoded(each)) for each in own.init] != [str(encoded(each)) for each in own.names["get_init_inputs"]()]:
        raise ModuleError("get_init_inputs gives something else each time")
    batch = _batch_name(source, own)
    named = ModuleSource(source.file, source.text, batch)
    size = own.names[batch] if batch else 0
    tried = {each: found for each in OTHER_SIZES if each < size and (found := _tried(named, own, each)) is not None}
    if not _follows_batch(own, tried, size):
        batch, tried = "", {}
    elements = {size: own.elements, **{each: found.elements for each, found in tried.items()}}
    return {
        "call": _call_text(own, tried, size),
        "parameters": [[name, _type(value)] for name, value in zip(own.parameter_names, own.inputs, strict=True)],
        "batch": batch,
        "own": size if batch else 0,
        "sizes": sorted(tried),
        "halved": bool(batch) and _tried(named, own, size // 2) is not None,
        "elements": {str(each): count for each, count in elements.items()} if batch else {"0": own.elements},
        "doc": inspect.cleandoc(own.names[TRUSTED_ENTRY].__doc__ or ""),
    }


class _Tried:
    """A file run on ``meta``, with one batch size."""

    def __init__(self, names: dict[str, Any], *, forward: bool) -> None:
        self.names = names
        for name in (TRUSTED_ENTRY, "get_inputs", "get_init_inputs"):
            if name not in names:
                what = "a problem's file has a class Model, get_inputs and get_init_inputs"
                raise ModuleError(f"the file defines no {name}; {what}")
        self.init = list(names["get_init_inputs"]())
        for each in self.init:
            encoded(each)
        with torch.device("meta"):
            self.inputs = list(names["get_inputs"]())
        model = _made(names[TRUSTED_ENTRY], self.init)
        if not isinstance(model, torch.nn.Module):
            raise ModuleError(f"{TRUSTED_ENTRY} is no torch.nn.Module")
        parameters = list(inspect.signature(model.forward).parameters)
        if len(parameters) < len(self.inputs):
            raise ModuleError(f"get_inputs gives {len(self.inputs)} values, and forward takes {len(parameters)}")
        self.parameter_names = parameters[: len(self.inputs)]
        self.state = [tuple(each.shape) for each in model.state_dict().values()]
        inputs = sum(each.numel() for each in self.inputs if isinstance(each, torch.Tensor))
        outputs = _outputs(model, self.inputs) if forward else None
        self.runs = outputs is not None
        """Its forward works without data."""
        self.elements = inputs + (inputs if outputs is None else outputs)

    @classmethod
    def of(cls, source: ModuleSource, batch: int | None, *, forward: bool = True) -> _Tried:
        return cls(run_file(source, batch), forward=forward)


def _made(cls: Any, init: Sequence[Any]) -> Any:
    """The module without data; with data if its constructor reads values."""
    try:
        with torch.device("meta"):
            return cls(*init)
    except (RuntimeError, NotImplementedError):
        return cls(*init)


def _outputs(model: torch.nn.Module, inputs: Sequence[Any]) -> int | None:
    """Number of elements of its result; None if forward does not run without data, or takes over ``FORWARD_S``."""
    try:
        with torch.device("meta"), torch.no_grad(), _limited(FORWARD_S):
            return sum(each.numel() for each in flat(model.to("meta")(*inputs)))
    except Exception:
        return None


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the block when the time is over."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _batch_name(source: ModuleSource, own: _Tried) -> str:
    """The global that holds the batch size; empty if none of ``BATCH_NAMES`` is a whole number above 1."""
    assigned = [assigned_name(node) for node in ast.parse(source.text).body if isinstance(node, ast.Assign)]
    found = (name for name in BATCH_NAMES if assigned.count(name) == 1)
    return next((name for name in found if type(own.names.get(name)) is int and own.names[name] > 1), "")


def _tried(source: ModuleSource, own: _Tried, size: int) -> _Tried | None:
    """The file with another batch size; None if it does not run, or if more than the inputs changes."""
    if not source.batch:
        return None
    try:
        found = _Tried.of(source, size, forward=own.runs)
    except Exception:
        return None
    same = [str(encoded(each)) for each in found.init] == [str(encoded(each)) for each in own.init]
    return found if same and found.state == own.state and found.runs == own.runs else None


def _follows_batch(own: _Tried, tried: dict[int, _Tried], size: int) -> bool:
    """Whether some dimension changes with the batch size, and every one that does equals it."""
    changed = False
    for other, found in tried.items():
        for mine, theirs in zip(own.inputs, found.inputs, strict=True):
            if isinstance(mine, torch.Tensor):
                if mine.dim() != theirs.dim() or mine.is_contiguous() != theirs.is_contiguous():
                    return False
                pairs = [pair for pair in zip(mine.shape, theirs.shape, strict=True) if pair[0] != pair[1]]
                changed = changed or bool(pairs)
                if any(pair != (size, other) for pair in pairs) or (pairs and not mine.is_contiguous()):
                    return False
    return changed


def _call_text(own: _Tried, tried: dict[int, _Tried], size: int) -> str:
    other = next(iter(tried.values()), None)
    parts = []
    for number, value in enumerate(own.inputs):
        theirs = other.inputs[number] if other is not None else value
        parts.append(_argument(value, theirs))
    return f"(({', '.join(parts)}{',' if len(parts) == 1 else ''}), {{}})"


def _argument(value: Any, other: Any) -> str:
    """An input in the trace format. Raises ModuleError for what cannot be handed over."""
    if not isinstance(value, torch.Tensor):
        if value is not None and type(value) not in _TYPES:
            raise ModuleError(f"get_inputs gives a {type(value).__name__}, which cannot be handed over")
        return repr(value)
    dtype = str(value.dtype).removeprefix("torch.")
    strides = None if value.is_contiguous() else tuple(value.stride())
    text = format_call(Call((TensorLike(tuple(value.shape), dtype, strides),), {}))
    text = text[len("((") : -len(",), {})")]
    sizes = [str(one) if one == two else "$batch" for one, two in zip(value.shape, other.shape, strict=True)]
    return text.replace(str(list(value.shape)), f"[{', '.join(sizes)}]", 1)


def _type(value: Any) -> str:
    return "Tensor" if isinstance(value, torch.Tensor) else _TYPES.get(type(value), "Tensor | None")


if __name__ == "__main__":
    main()
