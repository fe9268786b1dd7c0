"""``python -m kgbench.problem.case_kinds > docs/case-kinds.md``."""

from kgbench.problem.case_kinds.table import document

print(document(), end="")
