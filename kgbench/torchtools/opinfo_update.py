"""``python -m kgbench.torchtools.opinfo_update FILE…``: writes the ``opinfo:`` lists of ATen problem files again.

Only those lists change; comments and the rest of a file are kept. The installed torch decides which calls are taken, so
a second run changes nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from kgbench.core.errors import KgbenchError
from kgbench.problem.calls import DTYPES
from kgbench.problem.model import Access, Overload, Problem, TensorArgument
from kgbench.problem.registry import load_problem
from kgbench.problem.suites import aten_overload
from kgbench.torchtools.opinfo import SampledCall, collect
from kgbench.torchtools.opinfo_samples import NoSamples

MOST: Final = 16
"""Maximum number of calls per list."""
SHAPES: Final = 10
"""Number of distinct shapes below which OpInfo's reference inputs are used besides its sample inputs."""
MOST_ELEMENTS: Final = 1 << 16
"""Maximum number of elements of all tensors of a call together, since these cases also run in Triton's interpreter."""
REMARK: Final = "# written by python -m kgbench.torchtools.opinfo_update"


class CannotWrite(Exception):
    """A file has a form in which its lists cannot be replaced; the text says what to change."""


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: python -m kgbench.torchtools.opinfo_update problems/aten/NAME.yaml …", file=sys.stderr)
        return 2
    broken = 0
    for path in map(Path, sys.argv[1:]):
        try:
            notes = update(path)
        except (CannotWrite, NoSamples, KgbenchError, OSError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            broken = 1
        else:
            print("\n".join(f"{path}: {note}" for note in notes))
    return broken


def update(path: Path) -> list[str]:
    """Write the lists of a file; return one line about each. Raises CannotWrite, NoSamples, KgbenchError, OSError."""
    problem = load_problem(path)
    if problem.source != "aten":
        raise CannotWrite("only operators of source aten have sample inputs")
    text = path.read_text(encoding="utf-8")
    calls = _calls(problem)
    notes = []
    for owner, overloads in _sharing(problem, text).items():
        if lacking := _without_shape(overloads):
            notes.append(f"{owner}: no list, since samples do not have '{lacking}' and the file gives it no shape")
            continue
        chosen = choose(_for_all(overloads, calls), _dtypes(overloads))
        text = with_list(text, owner, chosen)
        shapes = len({call.shapes for call in chosen})
        names = ", ".join(each.name or problem.name for each in overloads)
        notes.append(f"{names}: {len(chosen)} calls, {shapes} distinct shapes")
    path.write_text(text, encoding="utf-8")
    load_problem(path)
    return notes


def _without_shape(overloads: Sequence[Overload]) -> str:
    """The name of a written argument (``out``) without a shape in the file, which no sample has; empty without one."""
    arguments = [each for overload in overloads for each in overload.arguments]
    written = [each for each in arguments if getattr(each, "access", "") == Access.WRITE]
    return next((each.name for each in written if isinstance(each, TensorArgument) and each.shape is None), "")


def _calls(problem: Problem) -> dict[str, list[SampledCall]]:
    """The sampled calls by overload of the file."""
    judged = problem.judged
    dtypes = sorted({dtype for each in judged for dtype in each.dtypes}, key=list(DTYPES.values()).index)
    names = {overload.name: aten_overload(problem, overload) for overload in judged}
    found = collect(problem.name, list(names.values()), dtypes, shapes=SHAPES)
    return {name: found.calls[own] for name, own in names.items()}


def _dtypes(overloads: Sequence[Overload]) -> list[str]:
    return [dtype for dtype in overloads[0].dtypes if all(dtype in each.dtypes for each in overloads)]


def _for_all(overloads: Sequence[Overload], calls: Mapping[str, list[SampledCall]]) -> list[SampledCall]:
    """The calls that all these overloads have."""
    lists = [calls[overload.name] for overload in overloads]
    common = [call for call in lists[0] if all(call in other for other in lists[1:])]
    if not common and any(lists):
        names = " and ".join(overload.name for overload in overloads)
        raise CannotWrite(f"{names} share their cases, and no sample is for both; give each 'cases' of its own")
    return common


# --- which calls ---


def choose(calls: Sequence[SampledCall], dtypes: Sequence[str], most: int = MOST) -> list[SampledCall]:
    """At most ``most`` calls, with as many shapes as possible and the dtypes in rotation; always the same ones."""
    small = [call for call in calls if sum(map(_elements, call.shapes)) <= MOST_ELEMENTS]
    alike: dict[str, dict[str, SampledCall]] = {}
    for call in small:
        alike.setdefault(f"{call.lazy} {without_dtype(call, '$')}", {}).setdefault(call.dtype, call)
    by_shape: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for key, variants in alike.items():
        by_shape.setdefault(next(iter(variants.values())).shapes, []).append(key)
    chosen = []
    for number, key in enumerate(sorted(_spread(list(by_shape.values()), most), key=list(alike).index)):
        in_turn = [*dtypes[number % len(dtypes) :], *dtypes[: number % len(dtypes)]]
        chosen.append(next(alike[key][dtype] for dtype in in_turn if dtype in alike[key]))
    return chosen


def _spread(groups: list[list[str]], most: int) -> Iterator[str]:
    """One key of every group, or of evenly spaced groups if there are more than ``most``; then further keys of each
    group.
    """
    if len(groups) > most:
        groups = [groups[number * len(groups) // most] for number in range(most)]
    left = min(most, sum(map(len, groups)))
    for depth in range(max(map(len, groups), default=0)):
        for number, group in enumerate(groups):
            if left and depth < len(group):
                left -= 1
                # Not the same position in every group: the calls of a group differ in dim, keepdim and the like.
                yield group[(depth + number) % len(group)]


def without_dtype(call: SampledCall, word: str) -> str:
    """The call's text with a word in place of the dtype that the sample was made for."""
    short = next(short for short, name in DTYPES.items() if name == call.dtype)
    return re.sub(rf"(?<=\], ){short}\b", word, call.text).replace(f"torch.{call.dtype}", word)


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


# --- the file's text ---


def _sharing(problem: Problem, text: str) -> dict[str, list[Overload]]:
    """Overloads by the owner of their ``cases``: an overload, or the file (the empty name)."""
    overloads = _child(_root(text), "overloads")
    sharing: dict[str, list[Overload]] = {}
    for overload in problem.overloads:
        if overload.check:
            own = None if overloads is None else _child(overloads, overload.name)
            has_own = own is not None and _child(own, "cases") is not None
            sharing.setdefault(overload.name if has_own else "", []).append(overload)
    return sharing


def with_list(text: str, overload: str, calls: Sequence[SampledCall]) -> str:
    """The file's text with these calls as an overload's ``cases.opinfo``, or the file's (the empty name)."""
    root = _root(text)
    body: yaml.MappingNode | None = root
    if overload:
        overloads = _child(root, "overloads")
        body = None if overloads is None else _child(overloads, overload)
    cases = None if body is None else _child(body, "cases")
    if cases is None or cases.flow_style or _pair(cases, "check") is None:
        raise CannotWrite(f"'cases' of {overload or 'the file'} is not written as a block; one key a line")
    old = _pair(cases, "opinfo")
    key, value = old or _pair(cases, "check") or (cases, cases)
    if value.start_mark.line < key.start_mark.line:
        raise CannotWrite(f"'{key.value}' of {overload or 'the file'} is a YAML alias; write the list out")
    lines = text.splitlines()
    first = key.start_mark.line if old else _last_line(value) + 1
    indent = " " * key.start_mark.column
    _, mark, words = lines[first].partition("#") if old else ("", "#", REMARK.removeprefix("#"))
    written = list_lines(calls, indent, f"  #{words}" if mark else "")
    return "\n".join([*lines[:first], *written, *lines[_last_line(value) + 1 :]]) + "\n"


def list_lines(calls: Sequence[SampledCall], indent: str, remark: str = f"  {REMARK}") -> list[str]:
    """The key ``opinfo`` with its list; nothing without calls."""
    return [f"{indent}opinfo:{remark}", *(f"{indent}  - {_item(call)}" for call in calls)] if calls else []


def _item(call: SampledCall) -> str:
    quoted = json.dumps(call.text, ensure_ascii=False)
    return f"{{call: {quoted}, lazy: {call.lazy}}}" if call.lazy else quoted


def _root(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return root


def _pair(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((name, value) for name, value in node.value if name.value == key), None)


def _child(node: yaml.MappingNode, key: str) -> yaml.MappingNode | None:
    pair = _pair(node, key)
    return pair[1] if pair is not None and isinstance(pair[1], yaml.MappingNode) else None


def _last_line(node: yaml.Node) -> int:
    """The last line of a value's text. The parser's end mark of a block lies at the start of the next one, after
    comments.
    """
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line)


if __name__ == "__main__":
    sys.exit(main())
