"""A problem file as a whole: its text, its keys, and one part per overload."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from kgbench.core.errors import ExpressionError, ProblemFileError, ProblemFileErrors
from kgbench.core.kinds import Kind
from kgbench.core.names import did_you_mean
from kgbench.problem.format.body import Part
from kgbench.problem.format.keys import HEAD, Body, File, OverloadKeys
from kgbench.problem.model import SOURCE_NAME, SOURCES
from kgbench.problem.yamltree import Complaint, Keys, node_of, read_data, read_tree

MARK: Final = "# EDIT:"
"""Comment of `kgbench new` after each line of a skeleton that the author must change."""

_MARKED: Final = re.compile(rf"(?P<text>.*?)\s*{MARK}\s*(?P<step>.*)")
Errors = list[ProblemFileError | ExpressionError]


def read_text(path: Path) -> tuple[bytes, str]:
    """The file as bytes and as text. Raises ProblemFileError, or ProblemFileErrors about all lines still marked."""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8")
    except OSError as error:
        raise ProblemFileError("KGB208", path, 1, "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ProblemFileError("KGB209", path, line, "", "is not UTF-8 text", "save it as UTF-8") from None
    if MARK in text:
        raise ProblemFileErrors(list(_marked(path, text)))
    return raw, text


def _marked(path: Path, text: str) -> Iterator[ProblemFileError]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := _MARKED.match(line):
            key, step = match["text"].strip().partition(":")[0], f"{match['step']}, then remove the comment '{MARK} …'"
            yield ProblemFileError("KGB212", path, number, key, "is still as kgbench new wrote it", step)


def key_line(path: Path, overload: str, key: str) -> int:
    """The line of an overload's key, its own or else the shared one; 1 without one."""
    nodes = read_tree(path, path.read_text(encoding="utf-8")).mapping()
    own = nodes["overloads"].mapping()[overload].mapping() if overload else {}
    node = own.get(key, nodes.get(key))
    return 1 if node is None else node.line


@dataclass(frozen=True)
class Written:
    """A file's keys, each read alone, and what is wrong with them."""

    path: Path
    file: File
    data: Keys
    errors: Errors

    @property
    def kind(self) -> Kind:
        return self.file.kind or Kind.COMPUTE

    def parts(self) -> tuple[Part, ...]:
        """One per overload, or the only one."""
        shared = self._part("", self.file, self.data)
        shared = replace(shared, data={**shared.data}, written=shared.written & set(Body.model_fields))
        if "overloads" not in self.data:
            return (replace(shared, own=frozenset(shared.values)),)
        found = []
        for name, keys in (self.file.overloads or {}).items():
            own = self._part(name, keys, self.data["overloads"][name])
            # Value sets belong to the arguments of the same mapping.
            gone = {"value_sets"} if "arguments" in own.own else set()
            values = {**{key: value for key, value in shared.values.items() if key not in gone}, **own.values}
            data = {**shared.data, **own.data}
            written, whole = own.written | shared.written, own.whole and shared.whole
            found.append(replace(own, values=values, data=data, written=written, whole=whole))
        return tuple(found)

    def _part(self, name: str, keys: Body, data: Keys) -> Part:
        known = Body.model_fields if name == "" else OverloadKeys.model_fields
        values = {key: getattr(keys, key) for key in keys.at if key in known}
        return Part(
            source=self.path.parent.name,
            problem=self.path.stem,
            kind=self.kind,
            name=name,
            node=data.node,
            values=values,
            data=dict(keys.at),
            own=frozenset(values),
            written=frozenset(data),
            whole=all(key in type(keys).model_fields for key in data),
        )


def read_keys(path: Path, text: str) -> Written:
    """Read the keys. Raises ProblemFileError if the file is not a mapping or not in a source's folder."""
    source = path.parent.name
    if not SOURCE_NAME.match(source):
        step = f"move it to a folder named {', '.join(SOURCES)}, or as a source of your own: lower case, digits and _"
        raise ProblemFileError("KGB203", path, 1, "", f"its folder '{source}' is no source", step)
    errors: Errors = []
    data = read_data(read_tree(path, text), errors)
    if not isinstance(data, Keys):
        node = node_of(data)
        raise node.complaint("KGB230", f"expected keys with values, got {node.kind_and_text()}")
    file = _valid_keys(data, errors)
    return Written(path, file, data, errors + list(_head_errors(data)))


def _valid_keys(data: Keys, errors: Errors) -> File:
    """Keep the correct keys, so that errors between keys are reported as well."""
    try:
        return File.model_validate(data, context=errors)
    except ValidationError as wrong:
        errors += complaints(wrong)
        rest = _without(data, wrong)
    # Without a wrong key another may be wrong as a consequence, which is not reported.
    return _valid_keys(rest, [])


def _head_errors(data: Keys) -> Iterator[ProblemFileError]:
    for key in (*HEAD, "doc"):
        if key not in data and all(known in File.model_fields for known in data):
            yield data.node.complaint("KGB222", f"'{key}' is missing", f"add '{key}: …'")
    if set(HEAD) <= set(data):
        for found, wanted in zip(data, HEAD, strict=False):
            if found != wanted:
                step = f"begin the file with {', '.join(HEAD)}, in this order"
                yield node_of(data[wanted]).complaint("KGB213", "comes too late", step)
                return
    if "overloads" in data and not data["overloads"]:
        yield node_of(data["overloads"]).complaint("KGB225", "expected at least one overload")


def _without(data: Keys, wrong: ValidationError) -> Keys:
    """The keys of the file and of its overloads, without wrong ones."""
    paths = [error["loc"] for error in wrong.errors(include_url=False)]
    rest = _less(data, {path[0] for path in paths if path[0] != "overloads" or len(path) == 1})
    if isinstance(overloads := rest.get("overloads"), Keys):
        of = {name: {path[2:3] for path in paths if path[:2] == ("overloads", name)} for name in overloads}
        overloads = _less(overloads, {name for name, keys in of.items() if () in keys})
        for name in overloads:
            overloads[name] = _less(overloads[name], {key for (key,) in of[name]})
        rest["overloads"] = overloads
    return rest


def _less(keys: Keys, gone: set[Any]) -> Keys:
    rest = Keys({key: child for key, child in keys.items() if key not in gone})
    rest.node, rest.whole = keys.node, keys.whole
    return rest


def complaints(wrong: ValidationError) -> Errors:
    """Pydantic's findings as kgbench's errors, with file, line and key of the value."""
    found: Errors = []
    for error in wrong.errors(include_url=False):
        complaint = error.get("ctx", {}).get("error")
        if isinstance(complaint, Complaint):
            found += complaint.errors
        else:
            found += _in_words(error)
    return found


def _in_words(error: Mapping[str, Any]) -> Errors:
    datum, node = error["input"], node_of(error["input"])
    if error["type"] == "missing":
        key = error["loc"][-1]
        return [node.complaint("KGB222", f"'{key}' is missing", f"add '{key}: …'")] if datum.whole else []
    if error["type"] == "extra_forbidden":
        return [node.complaint("KGB220", "unknown key", did_you_mean(node.name, ()))]
    if error["type"] == "list_type":
        return [node.complaint("KGB230", f"expected a list, got {node.kind_and_text()}", "write [ … ]")]
    return [node.complaint("KGB230", f"expected keys with values, got {node.kind_and_text()}")]


def all_together(errors: Errors) -> ProblemFileError | ExpressionError | ProblemFileErrors:
    """One error about all findings, in the order of lines."""
    once = {str(error): error for error in errors}
    in_order = sorted(once.values(), key=lambda error: error.line)
    return in_order[0] if len(in_order) == 1 else ProblemFileErrors(in_order)
