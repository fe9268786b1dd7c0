"""What a process that nobody trusts said is harmless wherever it is printed."""

from __future__ import annotations

import pytest

from kgbench.core.text import told, told_lines


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_no_line_of_it_begins_one_of_ours(end: str) -> None:
    said = told(f"wrong{end}  ::error file=a::b{end}end")
    assert said == "wrong / ::error file=a::b / end"


def test_control_characters_are_taken_out() -> None:
    assert told("a\x1b[31mb\x00c") == "a\ufffd[31mb\ufffdc"
    assert told_lines("a\x1b[31mb\nc\td", 100) == "a\ufffd[31mb\nc    d"


def test_workflow_commands_are_none_any_more() -> None:
    assert told("::error ::x") == "\\::error ::x"
    assert told_lines("a\n   ::add-mask::x\nlog ##[error]b", 100) == "a\n\\::add-mask::x\nlog # #[error]b"


def test_it_has_so_many_characters_at_most() -> None:
    assert len(told("x" * 10_000_000, 50)) == 50
    assert told(["x"] * 1_000_000, 20).startswith("['x', 'x'")
    assert len(told_lines("y\n" * 1_000_000, 100)) <= 100
