"""Refuses system calls that no GPU kernel needs, with EPERM, by a classic BPF program.

They are refused and not fatal: a library that tries one of them (binding a thread to a core) continues without. The
program is a list of comparisons, assembled here without a library; the kernel answers calls that it always allows from
a bitmap.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Sequence
from typing import Final

from kgbench.harness.sandbox import linux

_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_X32_BIT: Final = 0x40000000
"""Numbers of system calls from this on are those of the x32 ABI."""

REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    # Reaching into other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    # Getting ahead of the other side of a comparison.
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    # Undoing or rearranging what hides things.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    # Large parts of the kernel that no kernel of ours needs.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Memory that no limit of a process counts; a set of semaphores takes megabytes of the kernel's.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    # What the page cache holds would tell one candidate of another.
    "mincore": (27, 232),
    "cachestat": (451, 451),
    "fadvise64": (221, 223),
    # The machine itself.
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
}
"""Refused system calls, with their numbers on x86_64 and on aarch64; None where there is no such call."""

_CLONE: Final = {"x86_64": 56, "aarch64": 220}
_CLONE3: Final = 435
"""Its flags lie in memory, which no filter reads. Where there is no such call, C libraries call clone."""
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_PREADV2: Final = {"x86_64": 327, "aarch64": 286}
_NOWAIT: Final = 8
"""Flag of preadv2(2) with which it tells whether the page cache holds something."""
_PRLIMIT: Final = {"x86_64": 302, "aarch64": 261}
_NEW_NAMESPACES: Final = 0x7E020000
"""Flags of clone(2) that make namespaces: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_LOCAL: Final = (socket.AF_UNIX, socket.AF_NETLINK)
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW: Final = 0x7FFF0000
"""SECCOMP_RET_ALLOW."""
_REFUSE: Final = 0x00050000 | errno.EPERM
"""SECCOMP_RET_ERRNO with EPERM."""
_UNKNOWN: Final = 0x00050000 | errno.ENOSYS
"""SECCOMP_RET_ERRNO with ENOSYS."""

Instruction = tuple[int, int, int, int]
"""An instruction of the filter: code, jump if true, jump if false, constant."""


def supported() -> bool:
    """Whether the machine's system call numbers are known here."""
    return linux.machine() in _AUDIT_ARCH


def program(machine: str, internet: bool, spared: Sequence[str] = ()) -> list[Instruction]:
    """The filter for a machine. ``internet``: leave internet sockets to the network namespace, which has none.

    ``spared``: names of REFUSED that are not refused.
    """
    column = ("x86_64", "aarch64").index(machine)
    families = _LOCAL + _INTERNET if internet else _LOCAL
    lines: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for name, numbers in REFUSED.items():
        number = numbers[column]
        if number is not None and name not in spared:
            lines += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    lines += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _UNKNOWN)]
    lines += _when(_CLONE[machine], 0, [(_JUMP_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, _REFUSE)])
    if "mincore" not in spared:
        lines += _when(_PREADV2[machine], 5, [(_JUMP_ANY_BIT, 0, 1, _NOWAIT), (_RETURN, 0, 0, _REFUSE)])
    # Limits of others are out of reach; one's own are asked for as process 0.
    lines += _when(_PRLIMIT[machine], 0, [(_JUMP_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)])
    # Among the families that no network namespace closes is the one to a virtual machine's host.
    allowed: list[Instruction] = [(_JUMP_EQUAL, len(families) - i, 0, int(each)) for i, each in enumerate(families)]
    lines += _when(_SOCKET[machine], 0, [*allowed, (_RETURN, 0, 0, _REFUSE)])
    return [*lines, (_RETURN, 0, 0, _ALLOW)]


def install(internet: bool, spared: Sequence[str] = ()) -> None:
    """Install the filter for this process and all its descendants, permanently. Needs no_new_privs. Raises OSError."""
    machine = linux.machine()
    lines = program(machine, internet, spared)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
    set_filter, keep_speculation = 1, 4
    try:
        # Without the flag, kernels before 5.16 slow the whole process down.
        linux.system_call("seccomp", _SECCOMP[machine], set_filter, keep_speculation, header)
    except OSError:
        linux.system_call("seccomp", _SECCOMP[machine], set_filter, 0, header)


def rehearse(internet: bool) -> None:
    """Install the filter and check that it refuses what it should and nothing else. Raises OSError."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    install(internet)
    try:
        linux.system_call("ptrace", REFUSED["ptrace"][("x86_64", "aarch64").index(linux.machine())] or 0, 0, 0, 0, 0)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    else:
        raise OSError(0, "a filter was accepted but does not filter")
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _when(number: int, argument: int, body: list[Instruction]) -> list[Instruction]:
    """``body`` on the low half of an argument of one call, allowed where the body falls through."""
    load_argument = (_LOAD, 0, 0, 16 + 8 * argument)
    block = [load_argument, *body, (_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQUAL, 0, len(block), number), *block]
