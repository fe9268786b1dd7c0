"""Text as it is shown to a person: harmless to a terminal, short enough, with nouns in singular or plural."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text without control characters, so that what a candidate says cannot steer a terminal."""
    return "\n".join(map(_plain_line, text.replace("\t", "    ").split("\n")))


def _plain_line(line: str) -> str:
    return line if line.isprintable() else "".join(char if char.isprintable() else "�" for char in line)


def told(said: object, length: int = 300) -> str:
    """Output of an untrusted process, as one line of at most so many characters.

    Its lines are joined by `` / ``, so that none looks like a line of kgbench; control characters and workflow commands
    of CI systems are removed.
    """
    text = str(said)[: 4 * length]
    line = " / ".join(filter(None, (each.strip() for each in text.splitlines())))
    return shortened(_no_command(_plain_line(line)), length)


def told_lines(said: str, length: int) -> str:
    """The end of an untrusted process's output, line by line, without control characters and CI commands."""
    lines = said[-length:].replace("\t", "    ").splitlines()
    return "\n".join(_no_command(_plain_line(line)) for line in lines)


def _no_command(line: str) -> str:
    """The line with GitHub's workflow commands broken up: ``::`` in front, ``##[`` anywhere."""
    line = line.replace("##[", "# #[")
    return f"\\{line.lstrip()}" if line.lstrip().startswith("::") else line


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def number_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
