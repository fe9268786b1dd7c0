"""What a process that compiles a candidate ahead is told, and the file through which its worker gets what it compiled.

Both are processes of that candidate, and the worker reads the file while the other still writes it.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from kgbench.harness.wire.typed import Typed

CACHE: Final = "{cache}"
"""Stands in a file of Triton's for its cache folder, which is another one in each worker."""
GROUP: Final = "__grp__"
"""How the names of those files begin that hold paths within the cache folder."""
MOST_BYTES: Final = 128 << 20
"""Bytes that one candidate's file may have."""
_HEADER: Final = struct.Struct("<II")
"""Before each entry: how many bytes its name has, and its content."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""A path in Triton's cache: a folder, and a file in it."""
_MOST_NAME: Final = 400
"""Bytes of a name at most."""


@dataclass(frozen=True)
class CompileAhead(Typed):
    """Compile a candidate for these calls. The descriptor of the file comes along."""

    op = "compile ahead"
    source: str
    entries: dict[str, list[str]]
    """Names that the entry of each overload may have."""
    calls: list[list[Any]]
    """Each call's overload, positional arguments and keyword arguments, as ``candidate.ahead.argument`` takes them."""
    properties: dict[str, Any]
    """The GPU's, by the names of ``torch.cuda.get_device_properties``."""


def write(file: IO[bytes], name: str, content: bytes) -> None:
    """Append one file of Triton's cache. Raises OSError."""
    encoded = name.encode()
    file.write(_HEADER.pack(len(encoded), len(content)) + encoded + content)
    file.flush()


def unpack(file: IO[bytes], cache: Path) -> None:
    """Write the next whole entries into a cache folder, and stand before the first that is not whole yet.

    A file that is there already stays. Raises OSError.
    """
    while (entry := _next(file)) is not None:
        name, content = entry
        path = cache / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Triton may look for it from another process: it is there whole or not at all.
            part = path.with_name(f"{path.name}.part")
            part.write_bytes(_with_folder(name, content, str(cache)))
            part.rename(path)


def _next(file: IO[bytes]) -> tuple[str, bytes] | None:
    """The next entry; None where it is not whole, or its name is none of Triton's."""
    begin = file.tell()
    header = file.read(_HEADER.size)
    if len(header) == _HEADER.size:
        name_bytes, content_bytes = _HEADER.unpack(header)
        if name_bytes <= _MOST_NAME and content_bytes <= MOST_BYTES:
            name, content = file.read(name_bytes).decode("ascii", "replace"), file.read(content_bytes)
            if len(content) == content_bytes and _NAME.fullmatch(name):
                return name, content
    file.seek(begin)
    return None


def without_folder(name: str, content: bytes, folder: str) -> bytes:
    """A file's content with CACHE where it names the cache folder."""
    return content.replace(_quoted(folder), CACHE.encode()) if GROUP in name else content


def _with_folder(name: str, content: bytes, folder: str) -> bytes:
    """The inverse of ``without_folder``."""
    return content.replace(CACHE.encode(), _quoted(folder)) if GROUP in name else content


def _quoted(folder: str) -> bytes:
    """A path as it stands inside a text of JSON."""
    return json.dumps(folder)[1:-1].encode()
