"""Problems that are PyTorch modules in Python files, as in KernelBench. Imports no torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from kgbench.core.details.absence import DeviceMemory
from kgbench.core.kinds import DeviceKind

ENTRY: Final = "ModelNew"
"""Name of the class that a candidate defines."""
TRUSTED_ENTRY: Final = "Model"
"""Name of the class in the problem's own file."""
VALUE_SETS: Final = ("default", "centred", "wide")
"""Value sets of the inputs: as the file draws them, with both signs, and eight times as wide."""
EAGER: Final = "module:eager"
COMPILED: Final = "module:compile"
"""Baselines: the file's own module run eagerly, or ``torch.compile`` of it."""
BYTES_OF_ELEMENT: Final = 84
"""Bytes that judging takes per element of inputs and outputs: two workers, float64 and limits. A ReLU of 6.7e7 elements
took 60 on a CPU; before outputs were compared in pieces it took 88 there, and 98 on an H200."""


@dataclass(frozen=True)
class ModuleSource:
    """The Python file of such a problem."""

    file: str
    """File name, for tracebacks."""
    text: str
    batch: str = ""
    """Name of the global variable with the batch size; empty when the batch size cannot be changed."""
    least_elements: int = 0
    """Elements of the inputs and outputs together, in the smallest batch that can be called."""
    own_elements: int = 0
    """The same of the file's own call."""
    own_batch: int = 0
    """Batch size of the file's own call; 0 where it cannot be changed."""

    def needed_bytes(self, batch: int | None) -> float:
        """Bytes that judging a call of this batch size takes; None for the file's own call."""
        share = batch / self.own_batch if batch and self.own_batch else 1.0
        return BYTES_OF_ELEMENT * self.own_elements * share

    def lacks_memory(self, kind: DeviceKind, memory_gb: float) -> DeviceMemory | None:
        """That a GPU of so much memory, in 10^9 bytes, cannot hold the smallest call; None where it can."""
        needed_gb = self.least_elements * BYTES_OF_ELEMENT / 1e9
        return DeviceMemory(needed_gb, memory_gb) if kind is DeviceKind.CUDA and needed_gb > memory_gb else None

    def with_batch(self, size: int) -> ast.Module:
        """The file's syntax tree with batch size ``size``; unchanged if ``batch`` is empty. Raises SyntaxError."""
        tree = ast.parse(self.text, self.file)
        for node in tree.body:
            if self.batch and isinstance(node, ast.Assign) and assigned_name(node) == self.batch:
                node.value = ast.copy_location(ast.Constant(size), node.value)
        return tree


def assigned_name(node: ast.Assign) -> str:
    """The name that a statement assigns to; empty when it has several targets or another kind of target."""
    target = node.targets[0]
    return target.id if len(node.targets) == 1 and isinstance(target, ast.Name) else ""
