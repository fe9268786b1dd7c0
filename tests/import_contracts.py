"""Import contracts that import-linter has no type for."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from importlinter import Contract, ContractCheck, fields, output


class AllowedContract(Contract):
    """``source`` imports of kgbench only itself and what lies in ``allowed``."""

    type_name = "allowed"
    source = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        within = (str(self.source), *map(str, self.allowed))  # type: ignore[call-overload]
        modules = {self.source, *graph.find_descendants(self.source)}
        found = sorted(
            (module, imported)
            for module in modules
            for imported in graph.find_modules_directly_imported_by(module)
            if _below(imported, "kgbench") and not any(_below(imported, each) for each in within)
        )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for module, imported in check.metadata["found"]:
            output.print_error(f"{module} imports {imported}")


class AcyclicContract(Contract):
    """No module imports itself by way of others, imports inside functions included."""

    type_name = "acyclic"

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"cycle": error.args[1]})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        output.print_error(" is imported by ".join(check.metadata["cycle"]))


def _below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
