"""What README.md, AGENTS.md and docs/ promise is there: commands with their options, files, make's targets."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest

from kgbench.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Every line of a shell block that calls kgbench or make, with the document it stands in."""
    found = []
    for path in DOCUMENTS:
        for block in blocks(path.read_text(encoding="utf-8")):
            for line in block.splitlines():
                if re.match(r"(kgbench|python -m kgbench|make)\b", line):
                    found.append((path.name, line))
    return found


def problem_of(line: str) -> str:
    """What is wrong with a command line; empty when nothing is."""
    words = shlex.split(line.replace("python -m kgbench", "kgbench"), comments=True)
    if words[0] == "make":
        targets = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        known = {target for line_of_targets in targets for target in line_of_targets.split()}
        return "" if {word for word in words[1:] if "=" not in word} <= known else "no such target"
    if words[1:] and words[1].startswith("-"):
        return ""
    if words[1] not in COMMANDS:
        return "no such command"
    module, _, name = COMMANDS[words[1]].partition(":")
    command: click.Command | None = getattr(importlib.import_module(module), name)
    if isinstance(command, click.Group) and words[2:] and not words[2].startswith("-"):
        command = command.get_command(click.Context(command), words[2])
    if command is None:
        return "no such subcommand"
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = {word.split("=")[0] for word in words[2:] if word.startswith("--")} - options - {"--help"}
    return f"no such option: {', '.join(unknown)}" if unknown else ""


@pytest.mark.parametrize(("document", "line"), commands(), ids=lambda value: value)
def test_commands_in_documents_exist(document: str, line: str) -> None:
    assert problem_of(line) == "", document


def test_wrong_commands_are_noticed() -> None:
    assert len(commands()) > 8
    assert problem_of("kgbench rum --model examples") == "no such command"
    assert problem_of("kgbench run --modle examples  # as it is") == "no such option: --modle"
    assert problem_of("make dmo") == "no such target"
    assert problem_of("kgbench selftest exploit") == "no such subcommand"
    assert problem_of("kgbench selftest exploits --ablate") == "no such option: --ablate"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_named_files_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)  # kernel[grid](x) is no link
    linked = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in target]
    missing = [target for target in linked if target and not (path.parent / target).exists()]
    if path.name == "AGENTS.md":
        named = re.findall(r"`((?:kgbench|harness|baselines|docs|tests|scripts)/[\w./-]+)`", text)
        missing += [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_the_map_stays_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8")) < 4000
    assert (ROOT / "CLAUDE.md").read_text(encoding="utf-8") == "@AGENTS.md\n"
