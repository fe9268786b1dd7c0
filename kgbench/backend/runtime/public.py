"""Kernels that kgbench judged as correct, in place of PyTorch's own. README.md beside this folder says which.

    with enabled():
        model(x)
    print(calls())

A call goes to a kernel if it is one of those that the kernel was judged in, else to the library as always.
"""

from __future__ import annotations

from typing import Any

from .cublas import NotJudged
from .switch import Switch

__all__ = ("NotJudged", "absent", "calls", "cublas", "enabled", "operators", "reset", "watch")

_switch = Switch()
_LIBRARIES = {"aten": "aten", "vllm": "vllm", "cublas": "refused"}

enabled = _switch.enabled
watch = _switch.watch
cublas = _switch.cublas
"""The functions of cuBLAS's routines by name. They work without ``enabled()``."""


def calls() -> dict[str, dict[str, Any]]:
    """By operator ``{"kernel": n, "aten": m, "why": {reason: m}}``: how often a kernel ran, and how often the library.

    For vLLM's operators the library is ``vllm``; calls of cuBLAS's routines that were not judged are ``refused``.
    """
    return {each.operator.name: each.counts.shown(_LIBRARIES[each.operator.source]) for each in _switch.callers}


def reset() -> None:
    """Counts from zero again."""
    for each in _switch.callers:
        each.counts.reset()


def operators() -> list[str]:
    """Names of the operators that have a kernel here."""
    return [each.operator.name for each in _switch.callers]


def absent() -> list[str]:
    """Why kernels were not put in place when ``enabled()`` was entered last: vLLM is not loaded, or another one."""
    return list(_switch.absent)
