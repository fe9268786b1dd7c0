"""Tells the referee how long Triton compiles: that time counts against no call's deadline."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

from kgbench.harness.wire.buffers import ControlPage

COMPILER: Final = "triton.compiler.compiler"
"""The module of Triton's function ``compile``, through which every kernel goes."""
ALIASES: Final = ("triton.compiler", "triton")
"""Modules under which a kernel's first launch, and a user, look that function up."""


def note_compiling(page: ControlPage) -> None:
    """Have Triton's compiler write to the page when it begins and when it has ended.

    A candidate may write what it likes there: it gains seconds, up to the limit that compiling has.
    """
    modules: list[Any] = [importlib.import_module(name) for name in (COMPILER, *ALIASES)]
    compile_noted = _noted(modules[0].compile, page)
    for module in modules:
        module.compile = compile_noted


def _noted(compile_kernel: Callable[..., Any], page: ControlPage) -> Callable[..., Any]:
    under_way = 0

    @functools.wraps(compile_kernel)
    def compile_noted(*args: Any, **kwargs: Any) -> Any:
        # Threads may compile side by side: the time counts from the first that begins to the last that ends.
        nonlocal under_way
        if not under_way:
            page.compiling_begins()
        under_way += 1
        try:
            return compile_kernel(*args, **kwargs)
        finally:
            under_way -= 1
            if not under_way:
                page.compiling_ends()

    return compile_noted
