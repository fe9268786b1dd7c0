"""OpInfo's samples of an operator, and the calls of the operator that each sample makes when it runs."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.core.kinds import DeviceKind
from kgbench.torchtools.opinfo_arguments import Reached, Unfit, as_data, first_fitting, fits

FURTHER: Final[dict[str, tuple[str, ...]]] = {
    "_index_put_impl_": ("index_put",),
    "_local_scalar_dense": ("item",),
    "_to_copy": ("to", "double", "half", "bfloat16", "long", "int", "bool", "cfloat"),
    "copy_": ("nn.functional.instance_norm", "nn.functional.pad", "linalg.matrix_power", "diff"),
    "index": ("__getitem__",),
    "log_sigmoid_backward": ("nn.functional.logsigmoid",),
    "pow": ("__rpow__",),
    "reflection_pad1d_backward": ("nn.functional.pad",),
    "rrelu_with_noise": ("nn.functional.rrelu",),
    "rrelu_with_noise_backward": ("nn.functional.rrelu",),
    "unsafe_split_with_sizes": ("split",),
    "upsample_nearest2d_backward": ("nn.functional.interpolate", "nn.functional.upsample_nearest"),
}
"""By operator, functions of another name whose samples reach it."""
LIKE: Final = {"_index_put_impl_": "index_put_", "unsafe_split_with_sizes": "split_with_sizes"}
"""For operators that no Python function reaches, the operator that takes the same arguments."""
SEED: Final = 20260101
"""Seed of the random numbers among samples' arguments, so that every process gets the same samples."""


class NoSamples(Exception):
    """The installed torch has no sample inputs that can be read; the text says what to do."""


# --- which OpInfos ---


def infos_of(operator: str) -> list[Any]:
    """OpInfos of the functions that reach an operator, in torch's order. Raises NoSamples."""
    stem = operator.strip("_").removesuffix("_backward")
    names = {operator, operator.rstrip("_"), stem, f"nn.functional.{stem}", *FURTHER.get(operator, ())}
    return [info for info in _all_infos() if names & {info.name, info.aten_name, *(a.name for a in info.aliases)}]


def _all_infos() -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise NoSamples(
            f"torch's sample inputs cannot be imported: {error}; pip install expecttest, or 'kgbench[opinfo]'"
        ) from None
    return list(op_db)


# --- what a sample reaches ---


def recorded_samples(
    info: Any, operator: str, dtype: str, device_kind: DeviceKind, reference: bool
) -> Iterator[list[Reached]]:
    """Per sample, its calls of the operator; an empty list if it makes none."""
    torch_dtype = getattr(torch, dtype)
    if torch_dtype not in info.supported_dtypes(device_kind):
        return
    backward = operator.endswith("_backward")
    if backward and not (info.supports_autograd and torch_dtype.is_floating_point):
        return
    torch.manual_seed(SEED)
    random.seed(SEED)
    make = info.reference_inputs if reference else info.sample_inputs
    for sample in make("cpu", torch_dtype, requires_grad=backward):
        yield _reached_backward(info, sample, operator) if backward else _reached(info, sample, operator)


def _reached(info: Any, sample: Any, operator: str) -> list[Reached]:
    """The calls that a sample makes in the forward pass: as a function, as a method, in place."""
    for form in dict.fromkeys((info.op, info.method_variant, info.inplace_variant)):
        if form is None or (form is info.inplace_variant and sample.broadcasts_input):
            continue
        # Composite operators are seen whole in inference mode, and decomposed outside of it.
        for whole in (True, False):
            recorder = _Recorder(operator)
            given = tree_map(_copied, sample.input) if form is info.inplace_variant else sample.input
            with torch.inference_mode(whole), recorder, whatever_happens():
                form(given, *sample.args, **sample.kwargs)
            if recorder.reached:
                return recorder.reached
    fitting = first_fitting(operator, *as_data((sample.input, *sample.args), sample.kwargs))
    return [fitting] if fitting is not None and _own(info, operator) else []


def _own(info: Any, operator: str) -> bool:
    return operator in (info.aten_name, info.name)


def _reached_backward(info: Any, sample: Any, operator: str) -> list[Reached]:
    recorder = _Recorder(operator)
    with whatever_happens():
        outputs = tree_leaves(info.op(sample.input, *sample.args, **sample.kwargs))
        differentiable = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
        with recorder:
            torch.autograd.backward(differentiable, [torch.ones_like(each) for each in differentiable])
    return recorder.reached


@contextlib.contextmanager
def whatever_happens() -> Iterator[None]:
    """Ignore exceptions: a call that fails on this machine was recorded before, or does not reach the operator."""
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        yield


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the calls of one operator."""

    def __init__(self, operator: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operator = operator
        self.reached: list[Reached] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        namespace, _, name = func._schema.name.partition("::")
        if namespace == "aten" and name in (self.operator, LIKE.get(self.operator)):
            self._note(func, name, args, kwargs)
        return func(*args, **kwargs)

    def _note(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        noted = as_data(args, kwargs)
        overload = func._schema.overload_name or "default"
        if name == self.operator and fits(func._schema, *noted):
            self.reached.append((overload, *noted))
        else:
            # A number where the schema has a tensor, or another operator with the same arguments.
            fitting = first_fitting(self.operator, *noted)
            self.reached.append(fitting or (overload, (Unfit("arguments that fit no overload's schema"),), {}))


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
