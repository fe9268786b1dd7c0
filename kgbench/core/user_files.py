"""Small TOML files of the package that a user may overlay with an own file.

The user's file is named by an environment variable, which an option sets for its command, or lies in the user's
configuration folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgbench.core.errors import UsageError, shown_path


@dataclass(frozen=True)
class UserFile:
    """A file of the package, and the variable that names the user's file in its place."""

    shipped: Path
    variable: str

    def tables(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """The package's, then the user's if there is one.

        Raises UsageError when a file that was named is not there, or when one cannot be read.
        """
        yield self.shipped, _read(self.shipped)
        user = self._of_user()
        if user is not None:
            yield user, _read(user)

    def _of_user(self) -> Path | None:
        named = os.environ.get(self.variable)
        if named:
            return Path(named).expanduser()
        home = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
        usual = Path(home) / "kgbench" / self.shipped.name
        return usual if usual.is_file() else None


def bad_file(path: Path, what: str) -> UsageError:
    """The error that ``what`` is wrong in the file."""
    return UsageError("KGB537", f"{shown_path(path)}: {what}")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise bad_file(path, f"cannot be read: {error}") from error
