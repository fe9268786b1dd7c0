"""Text as it is shown to a person: harmless to a terminal, short enough, in the right number."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text without control characters, so that what a candidate says cannot steer a terminal."""
    return "\n".join(map(_plain_line, text.replace("\t", "    ").split("\n")))


def _plain_line(line: str) -> str:
    return line if line.isprintable() else "".join(char if char.isprintable() else "�" for char in line)


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def number_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
