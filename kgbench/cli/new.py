"""``kgbench new``: writes a draft of a problem file; only marked lines need to be changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from kgbench.cli.completion import complete_source
from kgbench.core.errors import UsageError, numbered, shown_path
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.problem.model import SOURCE_NAME, SOURCES
from kgbench.problem.registry import Registry
from kgbench.problem.schema import schema_line

_NAME: Final = re.compile(r"[A-Za-z_]\w*$")
_ATEN_S: Final = 300.0
"""Seconds in which torch must be imported and an operator's samples listed."""

SKELETON: Final = """\
# Change every line that ends in a comment with EDIT and remove that comment. As it stands the file describes
# out = self * factor, and says so key by key. docs/problem-format.md explains every key.
summary: a matrix times a number  # EDIT: say what the operator does, one line
kind: compute  # EDIT: keep it, or write view, creation, random or sync
category: elementwise  # EDIT: name a word to filter by
entry: "{name}(self: Tensor, factor: float) -> Tensor"  # EDIT: give the function that a kernel has to define
dtypes: {{required: [float32, float16]}}  # EDIT: name those that every case runs in
defaults: {{factor: 2.0}}  # EDIT: give the variables that a case may leave out
arguments:  # EDIT: describe every tensor of entry; its other parameters are the variables of their names
  self: {{access: read, shape: "(m, n)", draw: "normal()"}}
cases:
  check:  # EDIT: list small and awkward calls: empty, one, prime, strided, special values
    - {{m: 1, n: 1}}
    - {{m: 7, n: 97}}
    - {{m: 5, n: 130, factor: -0.5, dtype: float32}}
  fuzz:  # EDIT: give ranges from which every run draws fresh calls
    count: 4
    draw: {{m: {{range: [1, 40]}}, n: {{range: [1, 300]}}}}
  bench:  # EDIT: list realistic sizes, a call of at most two seconds on a CPU
    cpu: [{{m: 64, n: 1024, dtype: float32}}]
    gpu: [{{m: 4096, n: 4096, dtype: float32}}]
{baseline}
reference: "torch.mul(self, factor)"  # EDIT: give the correct result: an expression, def reference(…), or {place}
tolerance: {{rule: rounding, ulps: 2}}  # EDIT: keep it, or write {{rule: accumulate, length: "k"}} or {{rule: exact}}
cost: {{flops: "m * n", bytes: "2 * itemsize * m * n"}}  # EDIT: give the least work of a call
doc: "out = self * factor"  # EDIT: tell the author what the signature does not: layout, edge rules, the source
"""

_LIBRARY: Final = 'baseline: {{cuda: "{cuda}", cpu: "{cpu}"}}  # EDIT: name the library call, or {place}'
_CALLS: Final = {
    "aten": ("aten:mul.Scalar", "aten:mul.Scalar"),
    "vllm": ("vllm:{name}", "aten:mul.Scalar"),
    "cublas": ("cublas:{name}", "openblas:{name}"),
}
_OWN_CALLS: Final = ("aten:mul.Scalar", "aten:mul.Scalar")
_PLACE: Final = "module:function from {module}"


@click.command(short_help="Draft a problem file.")
@click.argument("source", metavar="SOURCE", shell_complete=complete_source)
@click.argument("name", metavar="NAME")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("my_problems"),
    show_default=True,
    metavar="DIR",
    help="The problem folder; the file becomes DIR/SOURCE/NAME.yaml.",
)
def new(source: str, name: str, out: Path) -> None:
    """Begin a problem file: a skeleton that says what to change.

    SOURCE is aten, vllm, cublas or a source of your own. `kgbench validate` names every line that is left to do.

    Where the library says what NAME is, the file is a whole first draft: for SOURCE aten an operator of ATen or one
    overload of it (erf, aten::erf, logaddexp.out), with signatures, cases and words from torch, which has to be
    installed, with expecttest; for cublas a routine of cuBLAS, from its header; for vllm a compiled operator, from the
    schema that it is registered with.
    """
    if not SOURCE_NAME.match(source):
        raise UsageError(
            "KGB119", f"a source is named in lower case, digits and _, not '{source}'; try kgbench new mine {name}"
        )
    name, overload, spelled = _operator(name) if source == "aten" else (name, "", False)
    if not _NAME.match(name):
        raise UsageError("KGB120", f"'{name}' cannot be the name of a function; try kgbench new {source} scale")
    if f"{source}/{name}" in Registry().ids():
        raise UsageError("KGB121", f"kgbench has a problem {source}/{name}; `kgbench show {source}/{name}` prints it")
    path = out / source / f"{name}.yaml"
    if path.exists():
        raise _exists(path)
    text = _draft_of(source, name, overload, spelled=spelled)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(schema_line() + (text or skeleton(source, name, out)))
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise UsageError(
            "KGB123", f"{path}: cannot write: {error.strerror}; give another folder with --out DIR"
        ) from None
    shown = shown_path(path)
    to_do = "a draft; read it, decide what its TODO comments ask, " if text else ""
    click.echo(f"{shown}: {to_do}change the lines marked EDIT, then")
    click.echo(f"  kgbench validate {shown}")
    click.echo(f"  kgbench run --problem-dir {out} --problems {source}/{name} --model reference")


def _exists(path: Path) -> UsageError:
    return UsageError("KGB122", f"{path} exists; take another NAME, or remove the file first")


def _operator(spelling: str) -> tuple[str, str, bool]:
    """Name and overload of an ATen operator, and whether the spelling can only mean ATen."""
    name = spelling.removeprefix("aten::")
    operator, dot, overload = name.partition(".")
    return operator, overload, bool(dot) or name != spelling


def _draft_of(source: str, name: str, overload: str, *, spelled: bool) -> str:
    """The draft from the source's library; empty, with a warning, where there is none."""
    if source == "aten":
        return _draft(name, overload, spelled=spelled)
    from kgbench.cli.draft_blas import NoDraft, blas_draft
    from kgbench.cli.draft_vllm import vllm_draft

    writers = {"cublas": blas_draft, "vllm": vllm_draft}
    if source not in writers:
        return ""
    try:
        return writers[source](name)
    except NoDraft as error:
        click.echo(f"kgbench: {numbered('KGB611', f'a skeleton, no draft: {error}')}", err=True)
        return ""


def _draft(operator: str, overload: str, *, spelled: bool) -> str:
    """The draft from torch; empty, with a warning, where there is none."""
    try:
        (said,) = ask("kgbench.torchtools.aten_draft", {"operator": operator, "overload": overload}, _ATEN_S)
    except NoAnswer as error:
        said = {"failed": str(error)}
    if "text" in said:
        return str(said["text"])
    why = said.get("unknown") or said.get("failed")
    if spelled:
        raise UsageError("KGB130", f"no draft of aten::{operator}: {why}")
    click.echo(f"kgbench: {numbered('KGB611', f'a skeleton, no draft from torch: {why}')}", err=True)
    return ""


def skeleton(source: str, name: str, out: Path) -> str:
    """The text of the skeleton; valid except for its marked lines."""
    place = _PLACE.format(module=out / ("MODULE.py" if source in SOURCES else f"{source}_library.py"))
    cuda, cpu = (call.format(name=name) for call in _CALLS.get(source, _OWN_CALLS))
    return SKELETON.format(name=name, place=place, baseline=_LIBRARY.format(cuda=cuda, cpu=cpu, place=place))
