"""What fork server and referees print: kept in files where there is a folder for them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

TAIL_CHARACTERS: Final = 2000
"""Length of the log's end that an error message quotes."""


class Logs:
    """``<folder>/<name>.log``; nothing is kept without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[IO[Any]]:
        """The file to which a process of this name prints."""
        with contextlib.ExitStack() as stack:
            file = None
            if self.folder is not None:
                # On a full disk the run is not ended for a log; the next result that cannot be kept says it.
                with contextlib.suppress(OSError):
                    self.folder.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context((self.folder / f"{name}.log").open("ab"))
            yield file or stack.enter_context(open(os.devnull, "ab"))

    def tail(self, name: str) -> str:
        """The end of a log, on lines of its own; empty where there is none."""
        if self.folder is None:
            return ""
        with contextlib.suppress(OSError):
            text = (self.folder / f"{name}.log").read_text(errors="replace")[-TAIL_CHARACTERS:]
            return f"\n{text}" if text else ""
        return ""
