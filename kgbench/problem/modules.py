"""Problems that are PyTorch modules in Python files, as in KernelBench. Imports no torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

ENTRY: Final = "ModelNew"
"""Name of the class that a candidate defines."""
TRUSTED_ENTRY: Final = "Model"
"""Name of the class in the problem's own file."""
VALUE_SETS: Final = ("default", "centred", "wide")
"""Value sets of the inputs: as the file draws them, with both signs, and eight times as wide."""
EAGER: Final = "module:eager"
COMPILED: Final = "module:compile"
"""Baselines: the file's own module run eagerly, or ``torch.compile`` of it."""


@dataclass(frozen=True)
class ModuleSource:
    """The Python file of such a problem."""

    file: str
    """File name, for tracebacks."""
    text: str
    batch: str = ""
    """Name of the global variable with the batch size; empty when the batch size cannot be changed."""

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
