"""ATen operators as PyTorch itself dispatches them, through ``torch.ops.aten``."""

from __future__ import annotations

import torch

from kgbench.baselines.registry import Baseline, Unavailable
from kgbench.core.kinds import DeviceKind


def load(name: str, device_kind: DeviceKind) -> Baseline:
    """The overload ``name`` (``add.Tensor``, ``mm``) on either kind of device.

    Raises ``ValueError`` for an unknown operator and ``Unavailable`` without a GPU for ``cuda``.
    """
    if device_kind == DeviceKind.CUDA and not torch.cuda.is_available():
        raise Unavailable(
            "PyTorch sees no CUDA device; use --device cpu, or install a CUDA build of torch and its driver"
        )
    notes = _full_precision() if device_kind == DeviceKind.CUDA else {"threads": "1 per side, set by the harness"}
    return Baseline(call=_overload(name), library=f"PyTorch {torch.__version__}", notes=notes)


def _overload(name: str) -> torch._ops.OpOverload:
    operator, _, overload = name.partition(".")
    try:
        found: torch._ops.OpOverload = getattr(getattr(torch.ops.aten, operator), overload or "default")
    except AttributeError as error:
        raise ValueError(f"aten:{name}: PyTorch {torch.__version__} has no such operator") from error
    return found


def _full_precision() -> dict[str, str]:
    """Turn TF32 off and make 16-bit products sum in float32, as the problems require of candidates."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    return {"matmul": "TF32 off, split sums of 16-bit products in float32"}
