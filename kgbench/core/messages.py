"""All numbered messages: what each means and what to do about it. ``docs/errors.md`` is printed from here.

The entries are in ``messages_input.py``, ``messages_work.py`` and ``messages_service.py``.

The code that raises a message names its number and says what is wrong in this case. Numbers do not change; one that is
no longer used is not given to another message.

``python -m kgbench.core.messages > docs/errors.md`` writes the document again.
"""

from __future__ import annotations

from typing import Final

from kgbench.core.message import Message
from kgbench.core.messages_input import INPUT
from kgbench.core.messages_service import SERVICE
from kgbench.core.messages_work import WORK

GROUPS: Final[dict[str, str]] = {
    "KGB1": "The command line",
    "KGB2": "Problem files and expressions",
    "KGB3": "This machine",
    "KGB4": "Runs and their folders",
    "KGB5": "Models and providers",
    "KGB6": "Warnings",
    "KGB7": "A service",
}

MESSAGES: Final[dict[str, Message]] = {**INPUT, **WORK, **SERVICE}
"""All messages by number."""

_HEAD: Final = """\
# Errors and warnings by number

Printed from `kgbench/core/messages.py` by `python -m kgbench.core.messages > docs/errors.md`; do not edit it by hand.

Each error and warning has a number, which stays the same from release to release: `kgbench: KGB113: there is no problem
'sofmax'; closest: aten/softmax`. The message says what is wrong in that one case, where, and what to do; this list says
what the number stands for. In Python it is the error's `number`. What becomes of a kernel is no error but an outcome,
and has none."""


def document() -> str:
    """The text of docs/errors.md."""
    parts = [_HEAD]
    for begin, title in GROUPS.items():
        of_group = ((number, each) for number, each in MESSAGES.items() if number.startswith(begin))
        rows = [f"| {number} | {each.meaning} | {each.step} |" for number, each in of_group]
        parts += ["", f"## {begin}xx: {title}", "", "| number | what it means | what to do |", "|---|---|---|", *rows]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(document(), end="")
