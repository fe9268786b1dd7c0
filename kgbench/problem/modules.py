"""A problem that is a module of PyTorch in a Python file, as KernelBench has them. Torch-free."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

ENTRY: Final = "ModelNew"
"""The class that a candidate defines."""
TRUSTED_ENTRY: Final = "Model"
"""The class of the problem's own file."""
VALUE_SETS: Final = ("default", "centred", "wide")
"""How inputs are drawn: as the file draws them, with both signs, and eight times as far out."""
EAGER: Final = "module:eager"
COMPILED: Final = "module:compile"
"""What candidates are timed beside: the file's own module as it stands, or ``torch.compile`` of it."""


@dataclass(frozen=True)
class ModuleSource:
    """The file of such a problem."""

    file: str
    """Its name, for tracebacks."""
    text: str
    batch: str = ""
    """The global that holds the batch size; empty where no other batch size can be asked for."""

    def with_batch(self, size: int) -> ast.Module:
        """The file's syntax tree with another batch size. Raises SyntaxError."""
        tree = ast.parse(self.text, self.file)
        for node in tree.body:
            if self.batch and isinstance(node, ast.Assign) and assigned_name(node) == self.batch:
                node.value = ast.copy_location(ast.Constant(size), node.value)
        return tree


def assigned_name(node: ast.Assign) -> str:
    """The one name that a statement assigns to; empty where it is something else."""
    target = node.targets[0]
    return target.id if len(node.targets) == 1 and isinstance(target, ast.Name) else ""
