"""``kgbench list`` and ``show``: what problems there are, and what one says."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kgbench.cli.completion import complete_problem_or_verdict
from kgbench.cli.options import out_option, problem_dir_option, problems_option, source_option
from kgbench.core.errors import UsageError, shown_path
from kgbench.core.kinds import Kind
from kgbench.core.names import did_you_mean
from kgbench.problem.registry import Registry, load_problem, load_summary, problem_folders

if TYPE_CHECKING:
    from kgbench.problem.model import Argument, CaseTemplate, Cost, Overload, Problem, Returned

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _registry(problem_dirs: Sequence[Path]) -> Registry:
    return Registry(problem_folders(problem_dirs))


# --- list ---

_KINDS: Final = tuple(str(kind) for kind in Kind)


@click.command("list")
@source_option
@problems_option
@click.option("--kind", "kinds", multiple=True, type=click.Choice(_KINDS), help="Only this kind. Repeatable.")
@click.option("--category", "categories", multiple=True, metavar="NAME", help="Only this category. Repeatable.")
@problem_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    kinds: tuple[str, ...],
    categories: tuple[str, ...],
    problem_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """List the problems, one line each."""
    registry = _registry(problem_dirs)
    found = [load_summary(registry.paths[each]) for each in registry.select(sources, globs)]
    known = sorted({each.category for each in found})
    for category in categories:
        if category not in known:
            raise UsageError("KGB117", f"there is no category '{category}'; {did_you_mean(category, known)}")
    found = [each for each in found if _wanted(each.kind, kinds) and _wanted(each.category, categories)]
    if as_json:
        click.echo(json.dumps([_plain(each) for each in found], indent=2))
        return
    for line in _columns([(each.id, each.kind, each.category, each.summary) for each in found]):
        click.echo(line)
    click.echo(_count(len(found), "problem"), err=True)


def _wanted(value: str, choices: Sequence[str]) -> bool:
    return not choices or value in choices


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows as aligned text; on a terminal the last column is cut at its edge."""
    widths = [max((len(row[index]) for row in rows), default=0) for index in range(len(rows[0]) if rows else 0)]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# --- show ---


@click.command("show", short_help="Print everything about a problem, or about one verdict.")
@click.argument("what", metavar="ID | RUN/ID", shell_complete=complete_problem_or_verdict)
@problem_dir_option
@out_option
@click.option(
    "--repro",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For RUN/ID of an installed package (--model liger): write and run a short file that shows what is wrong.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(what: str, problem_dirs: tuple[Path, ...], out: Path, repro: Path | None, as_json: bool) -> None:
    """Show everything about one problem, or about one verdict of a run.

    ID is a problem such as aten/add, in any spelling: aten::add, add, or add.Tensor for one overload. RUN/ID is what a
    run found out about it, with the command that repeats it: last/aten/softmax, 20260131/aten/softmax#2 for the third
    sample.
    """
    from kgbench.cli.repro import write_repro
    from kgbench.cli.verdict import show_verdict, split_run

    run, problem = split_run(what, out)
    if repro is not None:
        if run is None:
            raise UsageError("KGB583", f"--repro {repro}: name a verdict, for example last/{problem}")
        write_repro(run, problem, problem_dirs, repro)
    elif run is None:
        _show_problem(problem, problem_dirs, as_json=as_json)
    else:
        show_verdict(run, problem, problem_dirs, as_json=as_json)


def _show_problem(problem: str, problem_dirs: Sequence[Path], *, as_json: bool) -> None:
    registry = _registry(problem_dirs)
    name = registry.resolve(problem)
    found = load_problem(registry.paths[name.id])
    if name.overload is not None:
        found = dataclasses.replace(found, overloads=(_overload(found, name.overload),))
    if as_json:
        click.echo(json.dumps(_plain(found), indent=2))
    else:
        click.echo("\n".join(_problem_lines(found)))


def _overload(problem: Problem, name: str) -> Overload:
    for overload in problem.overloads:
        if overload.name == name:
            return overload
    known = [overload.name for overload in problem.overloads if overload.name]
    raise UsageError("KGB118", f"{problem.id} has no overload '{name}'; {did_you_mean(name, known)}")


def _problem_lines(problem: Problem) -> Iterator[str]:
    yield f"{problem.id}: {problem.summary}"
    yield f"{problem.kind}, {problem.category}; {shown_path(problem.path)}, version {problem.sha256[:12]}"
    for overload in problem.overloads:
        yield ""
        yield overload.signature.text
        yield from (f"  {key:12} {text}".rstrip() for key, text in _overload_rows(overload))
    yield ""
    yield problem.doc.rstrip()


def _overload_rows(overload: Overload) -> Iterator[tuple[str, str]]:
    """Key and text of every line about an overload; the key stands only at the first line of several."""
    if not overload.required:
        yield "not required", overload.reason
    optional = f"; optional {', '.join(overload.optional_dtypes)}" if overload.optional_dtypes else ""
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("arguments", _columns([_argument_row(each) for each in overload.arguments])),
        ("variables", (f"{name} = {expr.text}" for name, expr in overload.variables.items())),
        ("defaults", (_values(overload.defaults),) if overload.defaults else ()),
        ("dtypes", (f"{', '.join(overload.dtypes)}{optional}",) if overload.dtypes else ()),
        ("returns", (_returned(each) for each in overload.returns)),
        ("", (f"the argument {overload.returned_argument} itself",) if overload.returned_argument else ()),
        ("values", () if overload.values_defined else ("undefined",)),
        ("check", (_template(each) for each in overload.check)),
        ("opinfo", (_template(each) for each in overload.opinfo)),
        ("large", (_template(each) for each in overload.large)),
        ("fuzz", _fuzz_lines(overload)),
        *((f"bench {preset}", map(_template, cases)) for preset, cases in overload.bench.items()),
        ("tolerance", (_tolerance(overload),)),
        ("baseline", (f"{device}: {target}" for device, target in overload.baseline.items())),
        ("fallback", (overload.fallback,) if overload.fallback else ()),
        ("reference", overload.reference.rstrip().splitlines()),
        ("prepare", (overload.prepare,) if overload.prepare else ()),
        ("cost", _cost(overload.cost) if overload.cost else ()),
        ("alias", (f"shares the storage of {overload.alias}",) if overload.alias else ()),
        ("canonical", (overload.canonical,) if overload.canonical else ()),
        ("needs", (overload.needs.words,) if overload.needs else ()),
    )
    for key, lines in sections:
        for index, line in enumerate(lines):
            yield key if index == 0 else "", line


def _argument_row(argument: Argument) -> tuple[str, str, str]:
    from kgbench.problem.model import ScalarArgument

    if isinstance(argument, ScalarArgument) and argument.is_default:
        return argument.name, "", "as each call gives it, else entry's default"
    if isinstance(argument, ScalarArgument):
        return argument.name, "", f"= {argument.value.text}"
    named = {"dtype": argument.dtype, "strides": argument.strides, "offset": argument.offset, "live": argument.live}
    named["None when"] = argument.none_when
    named["count"] = argument.count
    if argument.shape is None:
        # A call gives both; the file's dtype is the default that no call needs.
        named.pop("dtype")
    parts = ["as each call gives it" if argument.shape is None else argument.shape.text]
    parts += [f"{key} {expr.text}" for key, expr in named.items() if expr is not None]
    ways = {"storage": "passed as its storage", "pointers": "passed as an array of pointers"}
    parts += [ways[argument.passed]] if argument.passed in ways else []
    parts += ["on the host"] if argument.host else []
    draws = {
        name: f"{draw.name}({', '.join(each.text for each in draw.arguments)})" for name, draw in argument.draw.items()
    }
    parts += [text if name == "default" else f"{name}: {text}" for name, text in draws.items()]
    return argument.name, argument.access, "; ".join(parts)


def _returned(item: Returned) -> str:
    parts = {"dtype": item.dtype, "shape": item.shape, "strides": item.strides}
    said = [f"{key} {expr.text}" for key, expr in parts.items() if expr is not None]
    return ", ".join(said + (["strides as ATen gives them"] if item.as_aten else [])) or "as the reference"


def _template(template: CaseTemplate) -> str:
    call = "" if template.call is None else template.call.text
    return "  ".join(part for part in (call, _values(template.variables)) if part) or "all defaults"


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        low_high = value.get("range")
        return f"{low_high[0]}..{low_high[1]}" if low_high else " | ".join(_value(each) for each in value["choice"])
    return value if isinstance(value, str) else json.dumps(_plain(value))


def _fuzz_lines(overload: Overload) -> Iterator[str]:
    if overload.fuzz is not None:
        dtypes = f", dtype={' | '.join(overload.fuzz.dtypes)}" if overload.fuzz.dtypes else ""
        call = f" of {overload.fuzz.call.text}" if overload.fuzz.call is not None else ""
        yield f"{_count(overload.fuzz.count, 'case')}{call} with {_values(overload.fuzz.draw)}{dtypes}"


def _tolerance(overload: Overload) -> str:
    tolerance = overload.tolerance
    length = f" over {tolerance.length.text} terms" if tolerance.length is not None else ""
    ulps = f" within {tolerance.ulps:g} ulps" if tolerance.rule in ("rounding", "quantize") else ""
    compute = f", computed in {tolerance.compute.text}" if tolerance.compute is not None else ""
    return f"{tolerance.rule}{length}{ulps}{compute}"


def _cost(cost: Cost) -> Iterator[str]:
    kind = f" of {cost.arithmetic}" if cost.arithmetic else ""
    yield f"{cost.flops.text} flops{kind}, {cost.bytes.text} bytes"
    if cost.loose:
        yield f"no bound on the time: {cost.loose}"


def _plain(value: Any) -> Any:
    """JSON-ready: expressions and calls as their text, numbers that JSON does not know as text."""
    from kgbench.problem.calls import ParsedCall
    from kgbench.problem.expressions import Expr
    from kgbench.problem.model import CaseTemplate

    if isinstance(value, (Expr, ParsedCall)):
        return value.text
    if isinstance(value, CaseTemplate):
        return {"variables": _plain(value.written), "line": value.line}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    strange = isinstance(value, (Path, complex)) or (isinstance(value, float) and not math.isfinite(value))
    return str(value) if strange else value
