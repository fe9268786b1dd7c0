"""Do the large calls of kernels that ship compile for a GPU that is not here, and fit its grids and shared memory?

    python -m benchmarks.compiled_examples [GLOB]... [--capability 90] [--timeout SECONDS] [--json FILE]

Every call of phase ``large`` is made with tensors on the device ``meta``, which have no memory. Triton compiles each
launch for the GPU and starts nothing, so that no result is judged. It finds tiles of too many elements, grids of more
than 65,535 in their second or third dimension, kernels that need too much shared memory, and code that Triton's
interpreter takes and its compiler does not. Needs no GPU. Ends with 1 where a call fails.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.corpus import examples
from benchmarks.script import Script, globs_argument, json_option, smoke_option
from kgbench.core.kinds import Phase
from kgbench.core.paths import examples_dir
from kgbench.problem.cases import bind
from kgbench.problem.cases.concrete import TensorSpec
from kgbench.problem.cases.expand import phase_cases
from kgbench.problem.model import Overload, PassedAs
from kgbench.problem.registry import Registry, load_problem

SHARED_BYTES: Final = 232_448
"""Shared memory of a block on an H100 or H200."""
MOST_PROGRAMS: Final = (2**31 - 1, 65_535, 65_535)
"""Programs of a grid's three dimensions at most."""
MAKERS: Final = (
    "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "full", "full_like", "arange", "tensor",
)  # fmt: skip
"""Functions of torch by which kernels' callers make tensors."""


@click.command(cls=Script)
@globs_argument("*")
@click.option("--capability", default=90, show_default=True, help="Compute capability of the GPU; 90 stands for 9.0.")
@click.option("--timeout", "limit_s", default=120.0, show_default=True, help="Seconds that an example may take.")
@json_option
@smoke_option(globs=("cublas/cublasSscal_v2",))
def main(globs: tuple[str, ...], capability: int, limit_s: float, json_path: Path | None) -> None:
    """Compile the large calls of examples for a GPU that is not here."""
    os.environ.pop("TRITON_INTERPRET", None)
    paths, found = Registry().paths, {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        launches = Launches(capability)
        for problem in examples(globs):
            found[problem] = _compiled(paths[problem], examples_dir() / f"{problem}.py", launches, limit_s)
            click.echo(f"{problem}: " + ("; ".join(found[problem]) or "compiles"))
    failed = sum(map(bool, found.values()))
    click.echo(f"{len(found) - failed} of {len(found)} compile")
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))
    sys.exit(failed > 0)


def _compiled(problem_file: Path, path: Path, launches: Launches, limit_s: float) -> list[str]:
    """What is wrong with an example's large calls, a line each."""
    problem, begun, found = load_problem(problem_file), time.monotonic(), []
    module = types.ModuleType("example")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except Exception as error:  # whatever an example raises is what is to be shown
        return [f"import: {type(error).__name__}: {error}"]
    for overload in problem.judged:
        call = getattr(module, overload.signature.name, None) or getattr(module, problem.name, None)
        for case, make in _calls(overload):
            if time.monotonic() - begun > limit_s:
                return [*found, f"{case}: not compiled within {limit_s:g} s"]
            launches.complaints.clear()
            try:
                positional, keyword = make()
                if call is None:
                    raise LookupError(f"no function {overload.signature.name}")
                call(*positional, **keyword)
            except Exception as error:  # as above
                launches.complaints.append(f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}")
            found += [f"{case}: {each}" for each in dict.fromkeys(launches.complaints)]
    return found


def _calls(overload: Overload) -> Iterator[tuple[str, Callable[[], tuple[list[Any], dict[str, Any]]]]]:
    """The id of each large case, and what makes its arguments."""
    for case in phase_cases(overload, Phase.LARGE, overload.large, overload.dtypes):

        def arguments(case: Any = case) -> tuple[list[Any], dict[str, Any]]:
            return bind(overload, case).passed(lambda each: _value(each.value))

        yield case.id, arguments


def _value(value: Any) -> Any:
    """An argument as a candidate gets it, its tensors without memory."""
    import torch

    if isinstance(value, TensorSpec):
        return _tensor(value)
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value] if any(isinstance(each, TensorSpec) for each in value) else value
    named = getattr(torch, value, None) if isinstance(value, str) else None
    return named if isinstance(named, (torch.dtype, torch.layout, torch.memory_format)) else value


def _tensor(spec: TensorSpec) -> Any:
    import torch

    dtype = getattr(torch, spec.dtype)
    if spec.host:
        return torch.zeros(spec.shape, dtype=dtype, device="cpu")
    if spec.passed == PassedAs.POINTERS:
        return torch.empty(max(spec.shape[0], 1), dtype=torch.int64)
    storage = torch.empty(max(spec.extent, 1), dtype=dtype)
    if spec.passed == PassedAs.STORAGE:
        return storage[: spec.extent]
    view = storage.as_strided(spec.shape, spec.strides, spec.offset)
    lazy = {"": lambda it: it, "conj": torch.conj, "neg": torch._neg_view}[spec.lazy]
    return lazy(view)


class Launches:
    """Triton's launches, compiled for a GPU that is not here and never started."""

    def __init__(self, capability: int) -> None:
        """From now on this process believes in a GPU: for a process that does nothing else."""
        self.complaints: list[str] = []
        """What is wrong with the launches since the last ``clear``."""
        import torch
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        limits = {
            "max_shared_mem": SHARED_BYTES,
            "multiprocessor_count": 132,
            "max_num_regs": 65536,
            "warpSize": 32,
        }
        utils = types.SimpleNamespace(
            get_device_properties=lambda device: limits, load_binary=lambda *words: (None, None, 0, 0, 1024)
        )
        triton.runtime.driver.set_active(types.SimpleNamespace(
            get_current_target=lambda: GPUTarget("cuda", capability, 32), get_current_device=lambda: 0,
            get_current_stream=lambda device=None: 0, get_active_torch_device=lambda: torch.device("meta"),
            is_active=lambda: True, get_device_interface=lambda: torch, map_python_to_cpp_type=lambda name: name,
            utils=utils,
        ))  # fmt: skip
        compiled = JITFunction.run

        def run(function: Any, *words: Any, grid: Any, warmup: bool, **named: Any) -> Any:
            kernel = compiled(function, *words, grid=grid, warmup=True, **named)
            self._look_at(function.fn.__name__, kernel, grid(dict(named)) if callable(grid) else grid)
            return kernel

        def tuned(tuner: Any, *words: Any, **named: Any) -> None:
            for config in tuner.configs:
                tuner.fn.run(*words, **named, **config.all_kwargs())

        JITFunction.run, Autotuner.run = run, tuned
        _believe_in_a_gpu(capability)

    def _look_at(self, name: str, kernel: Any, grid: tuple[int, ...]) -> None:
        if any(size > most for size, most in zip(grid, MOST_PROGRAMS, strict=False)):
            self.complaints.append(f"{name}: a grid of {tuple(grid)}")
        if kernel is not None and kernel.metadata.shared > SHARED_BYTES:
            self.complaints.append(f"{name}: {kernel.metadata.shared} bytes of shared memory")


def _believe_in_a_gpu(capability: int) -> None:
    """Tensors are made without memory and say that they are a GPU's."""
    import torch

    class OnGpu(torch.Tensor):
        is_cuda = property(lambda tensor: True)  # type: ignore[assignment]

    def without_memory(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *words, **named: make(*words, **{**named, "device": _place(named)}).as_subclass(OnGpu)

    for name in MAKERS:
        setattr(torch, name, without_memory(getattr(torch, name)))
    properties = types.SimpleNamespace(
        multi_processor_count=132, major=capability // 10, minor=capability % 10, name="NVIDIA H200",
        L2_cache_size=62_914_560, total_memory=150 << 30, shared_memory_per_multiprocessor=233_472,
    )  # fmt: skip
    torch.cuda.get_device_properties = lambda *device: properties
    torch.cuda.get_device_capability = lambda *device: (capability // 10, capability % 10)
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_available = lambda: True


def _place(named: dict[str, Any]) -> str:
    """The device of a tensor that is made with these arguments: none with memory but the host's."""
    return "cpu" if str(named.get("device")) == "cpu" else "meta"


if __name__ == "__main__":
    main()
