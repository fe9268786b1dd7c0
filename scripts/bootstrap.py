"""The door of ``make``: find a Python that is new enough and hand over to environment.py beside this file.

Usage: python3 scripts/bootstrap.py {demo,test,lint,env}

This file has to parse on the Pythons that it turns away (2.7 and 3.0 upwards), so it is written in what they share;
environment.py is free to be modern.
"""

import os
import subprocess
import sys

LOWEST = (3, 11)
# The first one found is taken; the version that is tested most stands first.
CANDIDATES = ("python3.11", "python3.12", "python3.13", "python3.14")
ASK = "import sys; sys.stdout.write('.'.join(map(str, sys.version_info[:3])))"
EXIT_MACHINE = 3


def parse_version(text):
    """(3, 12, 1) of "3.12.1"; an empty tuple for anything else."""
    parts = text.strip().split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


def version_of(python):
    """The version that a command answers with; an empty tuple when it is missing or broken (a pyenv shim, say)."""
    try:
        process = subprocess.Popen([python, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (IOError, OSError):
        return ()
    output = process.communicate()[0]
    return parse_version(output.decode("ascii", "replace")) if process.returncode == 0 else ()


def find_python(running, ask=version_of):
    """The command to use: None for the running Python, a name from CANDIDATES, or LookupError."""
    if tuple(running) >= LOWEST:
        return None
    for name in CANDIDATES:
        if ask(name) >= LOWEST:
            return name
    raise LookupError(too_old(running))


def too_old(running):
    """What to say when no Python on PATH is new enough."""
    return (
        "Python {0}.{1} or newer is needed; found {2}.{3}: apt install python{0}.{1} python{0}.{1}-venv "
        "(macOS: brew install python@3.13), then run make again; or name one: make demo PYTHON=/path/to/python3"
    ).format(LOWEST[0], LOWEST[1], running[0], running[1])


def main(arguments):
    """Exit status of the whole command."""
    try:
        python = find_python(sys.version_info[:3])
    except LookupError as error:
        sys.stderr.write("kgbench: {0}\n".format(error.args[0]))
        return EXIT_MACHINE
    if python is not None:
        sys.stderr.write("kgbench: python3 is {0}.{1}, using {2}\n".format(*(sys.version_info[:2] + (python,))))
        sys.stderr.flush()
        return subprocess.call([python, os.path.abspath(__file__)] + list(arguments))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import environment

    return environment.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
