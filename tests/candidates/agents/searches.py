"""Searches for answers by every way it knows: ``searches.py NEEDLES PATHS FOLDERS [tamper]``; prints what it found.

A needle is a text that only stands where answers are; a path is one that is worth trying; a folder is one that is worth
walking through. All are lists in JSON.
``tamper``: also ways that would do harm to a machine on which nothing stops them.
"""

import ctypes
import glob
import json
import os
import subprocess
import sys

NEEDLES = [each.encode() for each in json.loads(sys.argv[1])]
PATHS = json.loads(sys.argv[2])
FOLDERS = json.loads(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
found = []


def look(how, path):
    """Read one file for needles."""
    try:
        if os.path.isfile(path) and os.path.getsize(path) < 1 << 22:
            with open(path, "rb") as file:
                data = file.read()
            if any(needle in data for needle in NEEDLES):
                found.append(f"{how}: {path}")
    except OSError:
        pass


def by_name():
    for path in PATHS:
        look("by name", path)
        look("by going up", os.path.join(*[".."] * 20, path.lstrip("/")))


def by_walking():
    for folder, names, files in (each for start in FOLDERS for each in os.walk(start)):
        if all(f"by walking: {path}" in found for path in PATHS):
            return  # nothing is left to be shown
        if "site-packages" in folder and "kgbench" not in folder:
            names[:] = [name for name in names if "kgbench" in name]
            continue
        for name in files:
            if name.endswith((".yaml", ".py", ".jsonl", ".txt", ".json")):
                look("by walking", os.path.join(folder, name))


def by_other_processes():
    for process in glob.glob("/proc/[0-9]*"):
        if process == f"/proc/{os.getpid()}":
            continue
        for path in PATHS:
            for way in ("root", "cwd"):
                look(f"by /proc/PID/{way}", f"{process}/{way}/{path.lstrip('/')}")
        look("by /proc/PID/environ", f"{process}/environ")
        for descriptor in glob.glob(f"{process}/fd/*"):
            try:
                if os.path.isdir(descriptor):
                    for path in PATHS:
                        look("by /proc/PID/fd", f"{descriptor}/../../../../../../../{path.lstrip('/')}")
                elif not os.readlink(descriptor).startswith(("/dev", "pipe:", "socket:", "anon_inode:")):
                    look("by /proc/PID/fd", descriptor)
            except OSError:
                pass


def by_tracing():
    if libc.ptrace(16, os.getppid(), 0, 0) == 0:
        found.append("by ptrace")


def by_unmounting():
    for path in PATHS:
        folder = os.path.dirname(path)
        while folder != "/":
            libc.umount2(folder.encode(), 2)
            folder = os.path.dirname(folder)
    by_name()


def by_namespaces():
    for command in (["unshare", "-Urm"], ["nsenter", "-t", "1", "-m"], ["nsenter", "-t", str(os.getppid()), "-a"]):
        for path in PATHS:
            try:
                shown = subprocess.run([*command, "cat", path], capture_output=True, timeout=5).stdout
            except (OSError, subprocess.TimeoutExpired):
                continue
            if any(needle in shown for needle in NEEDLES):
                found.append(f"by {command[0]}: {path}")


def by_the_disk():
    for path in ("/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mem", "/proc/kcore"):
        try:
            with open(path, "rb") as disk:
                if disk.read(4096):
                    found.append(f"by the disk: {path}")
        except OSError:
            pass


for way in (by_name, by_walking, by_other_processes):
    way()
if sys.argv[4:] == ["tamper"]:
    for way in (by_tracing, by_unmounting, by_namespaces, by_the_disk):
        way()
print(json.dumps(sorted(set(found))))
