"""The code in a model's reply, which is text for a person: fenced blocks, prose around them, thoughts before them.

``code_of`` is pure and total: whatever the text, it returns and says how the code was found or why there is none. The
reply itself is kept whole elsewhere. The rules, in this order:

1. Every line end is a newline. What stands between ``<think>`` and ``</think>`` is no part of the answer; nor is what
   stands before a ``</think>`` that was never opened, as where the template opened it.
2. If all that remains is Python that defines an entry, it is the code: a reply without any fence.
3. A block is fenced by three or more backticks or tildes, in Markdown's way: closed by at least as many of the same,
   alone on a line and not four columns deeper than the opening one. A fence may be indented, as in a list, or stand
   behind words when it names Python. A block that is never closed ends with the reply. Blocks inside a block count
   where the outer one is not Python.
4. Chosen is the last block that parses and defines an entry at its top level (def, class, assignment or import), first
   among blocks that name Python or no language, then among the others, which were only called something else.
5. Else, of the blocks that name Python or read like it: the last that would define an entry if it parsed, else the
   last that parses and defines anything, else the last. What is wrong with it is the candidate's failure, not the
   reply's.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kgbench.core import syntax
from kgbench.core.details.absence import CodeProblem
from kgbench.llm.conversation import MAX_SOURCE_BYTES

MAX_REPLY_CHARACTERS: Final = 4 << 20
"""A longer reply is not looked into: models stop long before."""
_PYTHON: Final = frozenset(("python", "python3", "py", "py3", "triton"))
_LOOKS_LIKE_PYTHON: Final = re.compile(r"^(?:async +def|def|class|import|from|@) *\w", re.MULTILINE)
_DEF: Final = re.compile(r"^[ \t]*(?:async +)?def +(\w+)", re.MULTILINE)
_OPENING: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?P<before>[^`~\n]*+)(?P<mark>`{3,}+|~{3,}+)[ \t]*+(?P<language>[^`\s]*+)[^`\n]*+"
)
"""Possessive throughout: a reply of spaces must not take the square of its length."""
_THOUGHT: Final = re.compile(r"^[ \t]*<(think|thinking)>.*?(?:</\1>|(?P<open>\Z))", re.DOTALL | re.MULTILINE)
_END_OF_THOUGHT: Final = re.compile(r"</(?:think|thinking)>")
_DEEPEST: Final = 4
"""Blocks inside blocks that are looked into."""


@dataclass(frozen=True)
class Extracted:
    """What was found in a reply."""

    code: str | None
    why: str
    """How the code was taken; without code, why there is none, with names and numbers."""
    problem: CodeProblem | None = None
    """Why there is none; None with code."""


def code_of(text: str, entries: Sequence[str]) -> Extracted:
    """The candidate in a reply. ``entries`` are the names of functions that the problem may call."""
    if len(text) > MAX_REPLY_CHARACTERS:
        words = f"the reply has {len(text)} characters, more than {MAX_REPLY_CHARACTERS}"
        return Extracted(None, words, CodeProblem.TOO_LONG)
    answer, cut_off = _without_thoughts(_normal(text))
    if not answer.strip():
        return _without_code(_nothing(text, cut_off))
    whole = _Block(answer, "", closed=True)
    if whole.defines(entries):
        return _taken(whole, "the whole reply")
    blocks = list(_blocks(answer))
    chosen, how = _chosen(blocks, entries)
    if chosen is None:
        return _no_code(blocks)
    place = next(number for number, block in enumerate(blocks, 1) if block is chosen)
    return _taken(chosen, f"block {place} of {len(blocks)}, {how}" if len(blocks) > 1 else f"the only block, {how}")


@dataclass(frozen=True)
class _Block:
    code: str
    language: str
    closed: bool

    @property
    def says_python(self) -> bool:
        return self.language in _PYTHON or self.language.endswith(".py")

    @property
    def may_be_python(self) -> bool:
        return self.says_python or not self.language

    @cached_property
    def names(self) -> frozenset[str] | None:
        """What it defines at its top level; None where it is not Python or longer than a candidate may be."""
        if len(self.code) > MAX_SOURCE_BYTES:
            return None
        try:
            return frozenset(_defined(syntax.parse(self.code)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @property
    def looks_like_python(self) -> bool:
        """It is called Python or reads like it, whether it parses or not."""
        return bool(self.code.strip()) and (self.says_python or bool(_LOOKS_LIKE_PYTHON.search(self.code)))

    def defines(self, entries: Sequence[str]) -> bool:
        return self.names is not None and not self.names.isdisjoint(entries)

    def means_to_define(self, entries: Sequence[str]) -> bool:
        """It has the words of an entry's definition and is not Python."""
        return self.names is None and not set(_DEF.findall(self.code)).isdisjoint(entries)


def _normal(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate can neither be parsed nor stored
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _without_thoughts(text: str) -> tuple[str, bool]:
    """The answer alone, and whether the reply ends inside its thoughts."""
    cut_off = False
    if "</think" in text or "<think" in text:
        cut_off = any(match["open"] is not None for match in _THOUGHT.finditer(text))
        text = _THOUGHT.sub("", text)
        ends = list(_END_OF_THOUGHT.finditer(text))
        text = text[ends[-1].end() :] if ends else text
    return text, cut_off


def _nothing(text: str, cut_off: bool) -> CodeProblem:
    if cut_off:
        return CodeProblem.IN_THOUGHTS
    return CodeProblem.ONLY_THOUGHTS if text.strip() else CodeProblem.EMPTY


def _without_code(problem: CodeProblem) -> Extracted:
    return Extracted(None, str(problem), problem)


def _blocks(text: str, depth: int = 0) -> Iterator[_Block]:
    """Fenced blocks in their order; of one that is not Python those inside it, too."""
    lines = iter(text.split("\n"))
    for line in lines:
        opening = _opening(line)
        if opening is None:
            continue
        block = _block(opening, lines)
        yield block
        if depth < _DEEPEST and block.names is None:
            yield from _blocks(block.code, depth + 1)


def _opening(line: str) -> re.Match[str] | None:
    if "```" not in line and "~~~" not in line:
        return None
    match = _OPENING.fullmatch(line)
    if match is None or (match["before"].strip() and _language(match["language"]) not in _PYTHON):
        return None
    return match


def _language(word: str) -> str:
    """``python`` of ``{.python``, ``Python,`` and ``python:kernel.py``."""
    found = re.match(r"[{.]*([\w+#./-]*)", word)
    return found[1].lower() if found else ""


def _block(opening: re.Match[str], lines: Iterator[str]) -> _Block:
    """Takes the lines up to the closing fence, or all."""
    indent, mark = len(opening[0][: opening.start("mark")].expandtabs(4)), opening["mark"]
    closing = re.compile(rf"([ \t]*){re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
    taken, closed = [], False
    for line in lines:
        end = closing.fullmatch(line) if mark in line else None
        if end and len(end[1].expandtabs(4)) < indent + 4:
            closed = True
            break
        taken.append(line)
    return _Block(_unindented(taken, len(opening["indent"])), _language(opening["language"]), closed)


def _unindented(lines: Sequence[str], width: int) -> str:
    """Without the indent of the fence; a block that is indented as a whole begins at its first column."""
    text = "\n".join(line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
    first = next((line for line in text.split("\n") if line.strip()), "")
    return textwrap.dedent(text) if first[:1] in (" ", "\t") else text


def _defined(module: ast.Module) -> Iterator[str]:
    """Names that are bound at the top level, below ``if``, ``try``, ``with`` and loops as well."""
    rest: list[ast.AST] = list(module.body)
    while rest:
        match rest.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.stmt() | ast.ExceptHandler() | ast.match_case() | ast.Tuple() | ast.List() | ast.Starred() as node:
                rest += ast.iter_child_nodes(node)


def _chosen(blocks: Sequence[_Block], entries: Sequence[str]) -> tuple[_Block | None, str]:
    """By the rules 4 and 5 of the module's text, with words about which one held."""
    own = [block for block in blocks if block.may_be_python]
    python = [block for block in own if block.looks_like_python]
    ranks = (
        ([block for block in own if block.defines(entries)], "which defines an entry"),
        ([block for block in blocks if block.defines(entries)], "which defines an entry, Python by another name"),
        ([block for block in python if block.means_to_define(entries)], "which seems to define an entry"),
        ([block for block in python if block.names], "which defines no entry"),
        (python, "the last that looks like Python"),
    )
    return next(((found[-1], how) for found, how in ranks if found), (None, ""))


def _taken(block: _Block, how: str) -> Extracted:
    if "\0" in block.code:
        return Extracted(None, f"{how}: it has a NUL character, which Python does not read", CodeProblem.NUL)
    size = len(block.code.encode())
    if size > MAX_SOURCE_BYTES:
        return Extracted(None, f"{how}: it has {size} bytes, more than {MAX_SOURCE_BYTES}", CodeProblem.TOO_LONG)
    code = block.code.strip("\n") + "\n"
    return Extracted(code, how if block.closed else f"{how}; the reply ends inside it")


def _no_code(blocks: Sequence[_Block]) -> Extracted:
    """Why none of the blocks is the candidate."""
    if not any(block.code.strip() for block in blocks):
        return _without_code(CodeProblem.EMPTY_BLOCK if blocks else CodeProblem.NO_BLOCK)
    languages = dict.fromkeys(block.language or "no language" for block in blocks)
    return Extracted(None, f"{CodeProblem.NOT_PYTHON}: {', '.join(languages)}", CodeProblem.NOT_PYTHON)
