"""What may be passed on of a failed kernel's own log: the compiler's and the libraries' words, and no hidden input.

These are others' words, so they are filtered; what the judge itself found is told from data (``public.py``).

Before the first call a kernel has seen no input, so what is said while it is imported is passed on as it is. Later its
own words could carry inputs: an exception that it raises itself is named by its type; of others real numbers become
``#``, and so do whole numbers that could be the size of a hidden call; of small ones the first few stay, and so do
numbers and quotations that the kernel's text has. Paths of this machine and frames of kgbench are left out everywhere.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from typing import Final

from kgbench.core.details.where import Purpose
from kgbench.core.outcomes import Log
from kgbench.core.text import plain
from kgbench.core.types import Result
from kgbench.prompts.public_values import SMALL_INDEX

_MOST: Final = 3000
"""Characters of a log, from its end, where the reason stands."""
_NUMBERS: Final = 12
"""Small whole numbers that stay in an exception's words."""
_LONGEST: Final = 600
"""Characters of one line."""
_FRAME: Final = re.compile(r'^\s*File "(?P<path>[^"]*)", line (?P<line>\d+)(?:,? in .*)?$')
_EXCEPTION: Final = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::|$)")
_REAL: Final = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_WHOLE: Final = re.compile(r"\d+")
_PLACE: Final = re.compile(r"^(?:[\w.]+: )?at (?P<line>\d+):\d+")
"""The place in the kernel's text that an error of Triton's compiler names."""
_QUOTED: Final = re.compile(r"""'([^']*)'|"([^"']*)\"""")
_NAMES: Final = frozenset((*dir(builtins), "NoneType", "Tensor", "torch.dtype", "triton.language", "block_type", "ptr"))
"""What may stand in quotes although the kernel's text does not have it."""
_PATH: Final = re.compile(r"(?:/[\w.+@-]+){2,}/?")
_OURS: Final = re.compile(r"/kgbench/|<frozen ")
_RAISED: Final = re.compile(r"\s*(?:raise\b|assert\b)")


def failure_log(result: Result, code: str) -> str:
    """The message of a compiler, an interpreter or a crash; empty where there is none to pass on."""
    log = plain(result.log_tail)
    if result.outcome.facts.author_sees is Log.TRACEBACK:
        lines = list(_own_frames(log.splitlines()))
        if result.where is None or result.where.purpose is not Purpose.IMPORT:
            lines = list(_without_inputs(lines, code))
    elif result.outcome.facts.author_sees is Log.STACK:
        lines = list(_crash(log.splitlines()))
    else:
        return ""
    text = "\n".join(_PATH.sub(_last_part, line)[:_LONGEST] for line in lines).strip()
    return text if len(text) <= _MOST else "…" + text[-_MOST:]


def _own_frames(lines: list[str]) -> Iterator[str]:
    """A traceback without the frames of kgbench, each of which is a line with a path and lines of code below it."""
    ours = False
    for line in lines:
        frame = _FRAME.match(line)
        if frame:
            ours = bool(_OURS.search(frame["path"]))
        elif not line.startswith("    "):
            ours = False
        if not ours:
            yield line


def _without_inputs(lines: list[str], code: str) -> Iterator[str]:
    """A traceback of a call: lines of the kernel's text as they are, an exception's words without values."""
    own = {line.strip() for line in code.splitlines()}
    left, last, withheld = _NUMBERS, "", False
    for line in lines:
        if _FRAME.match(line) or line.strip() in own:
            last, withheld = line, False
            yield line
        elif _is_mark(line):
            yield line
        elif not withheld and (exception := _EXCEPTION.match(line)) and _raised_by_itself(last):
            withheld = True
            yield f"{exception['type']} (raised by the kernel itself: its words are not passed on)"
        elif not withheld:
            said, left = _without_values(line, left, code)
            yield said


def _raised_by_itself(last: str) -> bool:
    """Whether the last line of code before an exception raises it, or is one that no file has."""
    frame = _FRAME.match(last)
    return bool(_RAISED.match(last)) or (frame is not None and frame["path"].startswith("<"))


def _is_mark(line: str) -> bool:
    """``~~~^^^`` below a line of code."""
    return bool(line.strip()) and not line.strip().strip("~^")


def _without_values(line: str, left: int, code: str) -> tuple[str, int]:
    """The line with ``#`` for numbers but small and known ones, and ``…`` for quotations that are no known names."""
    place = _PLACE.match(line)
    in_code = place is not None and int(place["line"]) <= len(code.splitlines())

    def whole(found: re.Match[str]) -> str:
        nonlocal left
        left -= 1
        if in_code and place is not None and found.end() <= place.end():
            return found[0]
        known = len(found[0]) <= 6 and (int(found[0]) <= SMALL_INDEX or found[0] in written)
        return found[0] if left >= 0 and known else "#"

    def quoted(found: re.Match[str]) -> str:
        text = found[1] or found[2] or ""
        known = text in code or text in _NAMES
        return found[0] if known else "'…'"

    written = set(_WHOLE.findall(code))
    return _WHOLE.sub(whole, _REAL.sub("#", _QUOTED.sub(quoted, line))), left


def _crash(lines: list[str]) -> Iterator[str]:
    """What Python's fault handler says: its first line, and the kernel's own frames."""
    for line in lines:
        frame = _FRAME.match(line)
        if line.startswith("Fatal Python error:") or (frame and not _OURS.search(frame["path"])):
            yield line


def _last_part(path: re.Match[str]) -> str:
    return path[0].rstrip("/").rpartition("/")[2]
