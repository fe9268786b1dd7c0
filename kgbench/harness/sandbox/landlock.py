"""Landlock: a process gives up the rights to write, to signal outside itself and to use TCP. Needs no privileges.

Also hides folders that cannot be hidden by mounts: everything except them may be read.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kgbench.harness.sandbox import linux

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_WRITE_FILE, _READ_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 14
_CHANGES: Final = {1: 0x1FF2, 2: 1 << 13, 3: _TRUNCATE}
"""Rights to change files and folders, by the version of Landlock that brought them: make, remove, write, move, cut."""
_TCP: Final = (4, 0b11)
"""Version that brought rights to TCP ports, and these rights: bind and connect."""
_SCOPES: Final = (6, 0b11)
"""Version that brought scopes, and those used: abstract Unix sockets and signals reach none outside."""
_QUIET: Final = (7, 0b101)
"""Version that brought flags for logging, and those used: a hostile process must not flood the machine's audit log."""
SIGNALS_ABI: Final = _SCOPES[0]
"""First version of Landlock that can keep signals from other processes."""

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "nvidia", "dri", "infiniband")
"""Entries of /dev, or how they begin, that may be written to."""


def version() -> int:
    """The kernel's Landlock version. Raises OSError where it has none or it is off."""
    return linux.system_call("Landlock", _CREATE, None, 0, 1)


class Rules:
    """A ruleset being built; ``restrict`` applies it to this process permanently."""

    def __init__(
        self, abi: int, writable: Sequence[str], readable: Iterator[str] | None, network: bool = False
    ) -> None:
        """``writable``: folders with all rights. ``readable``: where given, files elsewhere cannot be read.

        ``network``: leave TCP open.
        """
        self.abi = abi
        self.reads = readable is not None
        self.changes = sum(bits for since, bits in _CHANGES.items() if abi >= since)
        handled = self.changes | (_READ_FILE if readable is not None else 0)
        fields = struct.pack("=QQQ", handled, 0 if network else _from(abi, _TCP), _from(abi, _SCOPES))
        size = 8 if abi < _TCP[0] else 16 if abi < _SCOPES[0] else 24
        self.fd = linux.system_call("Landlock", _CREATE, ctypes.create_string_buffer(fields, 24), size, 0)
        file_rights = _WRITE_FILE | (_TRUNCATE if abi >= 3 else 0)
        for folder in writable:
            self._allow(folder, handled)
        for device in _devices():
            self._allow(device, file_rights)
        # CUDA names its threads there, by a file that it opens to be cut; refused that, it does not start.
        self._allow("/proc/self", file_rights)
        for path in readable or ():
            self._allow(path, _READ_FILE)

    def allow_device(self, path: str) -> None:
        """One more device, or file, that may be written to. Raises OSError."""
        self._allow(path, _READ_FILE | _WRITE_FILE if self.reads else _WRITE_FILE)

    def restrict(self) -> None:
        """Needs no_new_privs. Raises OSError."""
        linux.system_call("Landlock", _RESTRICT, self.fd, _from(self.abi, _QUIET))
        os.close(self.fd)

    def _allow(self, path: str, rights: int) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            # Gone or out of reach: then no rule is needed either.
            return
        try:
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
            linux.system_call("Landlock", _ADD_RULE, self.fd, 1, rule, 0)
        finally:
            os.close(place)


def all_but(hidden: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """The fewest paths that hold every file outside ``hidden``, and those of ``kept``. Links are not followed."""
    closed = {str(Path(path).resolve()) for path in hidden}
    yield from _outside("/", closed)
    for path in {str(Path(path).resolve()) for path in kept}:
        if any(Path(path).is_relative_to(folder) for folder in closed):
            yield from _outside(path, {folder for folder in closed if Path(folder) != Path(path)})


def _outside(folder: str, closed: set[str]) -> Iterator[str]:
    prefix = folder.rstrip("/") + "/"
    if not any(path.startswith(prefix) for path in closed):
        yield folder
        return
    try:
        entries = [entry.path for entry in os.scandir(folder) if not entry.is_symlink()]
    except OSError:
        return
    for path in entries:
        if path not in closed:
            yield from _outside(path, closed)


def rehearse(abi: int, folder: str) -> None:
    """Apply the rules and check that only ``folder`` can be written to. Raises OSError."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    Rules(abi, [folder], None).restrict()
    Path(folder, "inside").write_text("")
    Path("/dev/null").write_text("")
    try:
        Path(folder + ".outside").write_text("")
    except PermissionError:
        return
    Path(folder + ".outside").unlink()
    raise OSError(0, "Landlock was accepted but does not restrict")


def _from(abi: int, right: tuple[int, int]) -> int:
    return right[1] if abi >= right[0] else 0


def _devices() -> Iterator[str]:
    for name in os.listdir("/dev"):
        if name.startswith(_DEVICES):
            yield f"/dev/{name}"
