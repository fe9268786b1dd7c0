"""Where the code stands in a reply, for every way in which models write one."""

from __future__ import annotations

import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbench.llm.conversation import MAX_SOURCE_BYTES
from kgbench.models import replies
from kgbench.models.replies import code_of

ENTRIES = ("add_Tensor", "add")
CODE = "import torch\n\n\ndef add_Tensor(self, other):\n    return self + other\n"
DRAFT = "def add_Tensor(self, other):\n    return None\n"
HELPER = "def helper(x):\n    return x\n"
BROKEN = "def add_Tensor(self, other:\n    return self\n"


def block(code: str, language: str = "python", mark: str = "```") -> str:
    return f"{mark}{language}\n{code}{mark}\n"


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}" if line.strip() else line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        pytest.param(block(CODE), CODE, id="one block"),
        pytest.param(f"Here it is:\n\n{block(CODE)}\nIt adds.", CODE, id="prose around"),
        *(pytest.param(block(CODE, name), CODE, id=f"called {name!r}") for name in (
            "", "py", "Python", " python", "python3", "{.python}", "python title=x", "python:kernel.py", "kernel.py",
            "triton",
        )),
        pytest.param(block(CODE, mark="~~~"), CODE, id="tildes"),
        pytest.param(block(CODE, mark="`````"), CODE, id="five backticks"),
        pytest.param(f"```python\n{CODE}`````\ndone", CODE, id="closed by more than opened it"),
        pytest.param(block(CODE).replace("\n", "\r\n"), CODE, id="Windows line ends"),
        pytest.param(block(CODE).replace("\n", "\r"), CODE, id="old Macintosh line ends"),
        pytest.param("\ufeff" + CODE, CODE, id="byte order mark"),
        pytest.param("1. So:\n\n" + indented(block(CODE), "   "), CODE, id="indented in a list"),
        pytest.param("- So:\n\n" + indented(block(CODE), "\t"), CODE, id="indented by tabs"),
        pytest.param("1. " + indented(block(CODE), "   ")[3:], CODE, id="behind the number of a list"),
        pytest.param("10. " + indented(block(CODE), "    ")[4:], CODE, id="behind a longer number"),
        pytest.param(f"The kernel: {block(CODE)}", CODE, id="behind words"),
        pytest.param(block(indented(CODE, "    ")), CODE, id="the code alone indented"),
        pytest.param(f"```python   \n{CODE}```  \n", CODE, id="spaces behind fences"),
        pytest.param(f"```python\n{CODE}", CODE, id="never closed"),
        pytest.param(f"```python\n\n\n{CODE}\n\n```", CODE, id="empty lines around"),
        pytest.param(CODE, CODE, id="bare"),
        pytest.param(f"\n\n{CODE}\n", CODE, id="bare with empty lines"),
        # Several blocks.
        pytest.param(block(DRAFT) + "Better:\n" + block(CODE), CODE, id="the last that defines an entry"),
        pytest.param(block(CODE) + "Use it so:\n" + block("print(add_Tensor(1, 2))\n"), CODE, id="usage behind it"),
        pytest.param(block(CODE) + block(HELPER), CODE, id="a helper behind it"),
        pytest.param(block(CODE) + block(BROKEN), CODE, id="a broken one behind it"),
        pytest.param(block(CODE) + f"```python\n{BROKEN}", CODE, id="cut off in a second one"),
        pytest.param(block(HELPER) + block("x = 1\n"), "x = 1\n", id="none defines an entry: the last that parses"),
        pytest.param(block(HELPER) + block("def f(:\n"), HELPER, id="none defines an entry, the last is broken"),
        pytest.param(block(BROKEN) + block("import torch\n"), BROKEN, id="one would define it if it parsed"),
        pytest.param(block("a b c\n") + block("d e f\n"), "d e f\n", id="none parses: the last"),
        pytest.param(block("void f();\n", "cpp") + block(CODE) + block("ls\n", "bash"), CODE, id="other languages"),
        pytest.param(block("pip install triton\n", "") + block(BROKEN), BROKEN, id="output without a language"),
        pytest.param(block(BROKEN) + "It gives\n" + block("result = 5\n", ""), BROKEN, id="output that parses"),
        pytest.param(block(DRAFT, "text") + block(CODE), CODE, id="Python by another name counts less"),
        pytest.param(block(CODE) + block(DRAFT, "text"), CODE, id="even if it comes later"),
        pytest.param(block(CODE, "cuda"), CODE, id="only block, called something else"),
        pytest.param(block(CODE, "cuda") + block("import os\n"), CODE, id="called something else, but an entry"),
        # Blocks inside blocks.
        pytest.param(block(f"# Kernel\n\n{block(CODE)}\nfast\n", "markdown", "````"), CODE, id="inside a longer fence"),
        pytest.param(f"```markdown\nSo:\n{block(CODE)}```\n", CODE, id="inside one of equal length"),
        pytest.param(f"```\n{block(CODE)}```\n", CODE, id="fenced twice"),
        pytest.param(f"```python\n{BROKEN}\nNo, again:\n\n{block(CODE)}", CODE, id="begun again without closing"),
        # Thoughts.
        pytest.param(f"<think>\n{block(DRAFT)}</think>\n{block(CODE)}", CODE, id="thoughts before"),
        pytest.param(f"{block(CODE)}\n<think>\n{block(DRAFT)}</think>\n", CODE, id="thoughts behind"),
        pytest.param(f"<thinking>{DRAFT}</thinking>\n{CODE}", CODE, id="thoughts before bare code"),
        pytest.param(f"{block(DRAFT)}done.</think>\n{block(CODE)}", CODE, id="opened by the template"),
        pytest.param(f"{block(CODE)}\n<think>\n{block(DRAFT)}", CODE, id="cut off in later thoughts"),
    ],
)  # fmt: skip
def test_code_is_found(reply: str, code: str) -> None:
    assert code_of(reply, ENTRIES).code == code


@pytest.mark.parametrize(
    "definition",
    [
        "async def add(a, b): ...",
        "class add: ...",
        "add = max",
        "add: object = max",
        "first, (add, *rest) = f()",
        "from kernels import plus as add",
        "import add.one",
        "try:\n    import torch\nexcept ImportError:\n    pass\nelse:\n    def add(a, b): ...",
        "if True:\n    pass\nelif False:\n    def add(a, b): ...",
        "with open('x') as file:\n    add = 1",
        "match 1:\n    case 1:\n        def add(a, b): ...",
    ],
)
def test_an_entry_is_defined_by(definition: str) -> None:
    found = code_of(block(definition + "\n") + block(HELPER), ENTRIES)
    assert (found.code, found.why) == (definition + "\n", "block 1 of 2, which defines an entry")


@pytest.mark.parametrize(
    "other", ["def f():\n    def add(): ...", "add", "class A:\n    add = 1", "x = [add]", "del add"]
)
def test_an_entry_is_not_defined_by(other: str) -> None:
    assert code_of(block(other + "\n") + block(HELPER), ENTRIES).code == HELPER


def test_fences_in_a_docstring_do_not_end_the_block() -> None:
    inner = 'def add(a, b):\n    """Adds.\n\n    ```python\n    def add(): pass\n    ```\n    """\n    return a + b\n'
    assert code_of(block(inner), ENTRIES).code == inner
    assert code_of(f"So:\n{block(inner)}", ENTRIES).code == inner
    assert code_of(inner, ENTRIES) == replies.Extracted(inner, "the whole reply")


def test_text_inside_the_code_stays_as_it_is() -> None:
    code = 'SOURCE = """\n  __global__ void f() {}\n   \n"""\n\n\ndef add(a, b):\n\treturn a\n'
    assert code_of(block(code), ENTRIES).code == code


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "the reply is empty"),
        (" \n\t\r\n", "the reply is empty"),
        ("I cannot do that.", "the reply has no code block"),
        ("Sorry", "the reply has no code block"),
        ("add_Tensor", "the reply has no code block"),
        ("Use `torch.add`.", "the reply has no code block"),
        ("x = 1\n", "the reply has no code block"),
        ("```python\n```", "the reply's code block is empty"),
        ("```python", "the reply's code block is empty"),
        (f"<think>\n{block(CODE)}", "the reply ends inside its thinking"),
        (f"<think>\n{block(CODE)}</think>\n", "the reply holds nothing but its thinking"),
        (block("int main() {}\n", "cpp"), "no code block of the reply is Python: cpp"),
        (
            block("int f();\n", "cpp") + block("$ make\n", ""),
            "no code block of the reply is Python: cpp, no language",
        ),
        (block(CODE + "# \0\n"), "the only block, which seems to define an entry: it has a NUL character"),
        (block(CODE + "#" * MAX_SOURCE_BYTES + "\n"), f"bytes, more than {MAX_SOURCE_BYTES}"),
        ("x" * (replies.MAX_REPLY_CHARACTERS + 1), f"characters, more than {replies.MAX_REPLY_CHARACTERS}"),
    ],
)
def test_no_code_says_why(reply: str, why: str) -> None:
    found = code_of(reply, ENTRIES)
    assert found.code is None
    assert why in found.why


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (CODE, "the whole reply"),
        (block(CODE), "the only block, which defines an entry"),
        (block(CODE) + block(HELPER), "block 1 of 2, which defines an entry"),
        (f"```python\n{BROKEN}", "the only block, which seems to define an entry; the reply ends inside it"),
        (block(CODE, "cuda"), "the only block, which defines an entry, Python by another name"),
        (block(HELPER), "the only block, which defines no entry"),
    ],
)
def test_code_says_how_it_was_taken(reply: str, why: str) -> None:
    assert code_of(reply, ENTRIES).why == why


def test_a_lone_surrogate_is_replaced() -> None:
    found = code_of(block("# \ud800\n" + CODE), ENTRIES).code
    assert found == "# ?\n" + CODE


def test_warnings_about_a_candidate_are_not_printed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert code_of(block(CODE + 'PATTERN = "\\d"\n'), ENTRIES).why == "the only block, which defines an entry"


@pytest.mark.parametrize(
    "reply",
    [
        " " * 1_000_000 + "`",
        "```" + " " * 1_000_000 + "`",
        "```python\n" + "\t" * 1_000_000,
        "<think>\n" * 100_000,
        "".join("`" * length + "\n" for length in range(1000, 2, -1)),
        "x = 1" + " + 1" * 100_000,
        "x" + "[0]" * 100_000,
        "-" * 1_000_000,
        "((((" * 100_000,
    ],
)
def test_time_does_not_grow_with_the_square(reply: str) -> None:
    begun = time.process_time()
    code_of(reply, ENTRIES)
    assert time.process_time() - begun < 5


PIECES = st.sampled_from(
    ["```", "```python\n", "````", "~~~", "\n", "\r\n", "\r", " ", "    ", "\t", "<think>", "</think>", "> ", "1. ",
     CODE, DRAFT, BROKEN, HELPER, "add", "\0", "\ud800", "'''", '"""', "\\", "{", "(", "prose", "cpp\n", "é"]
)  # fmt: skip


@settings(database=None, deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=30).map("".join))
def test_any_text_has_an_answer(text: str) -> None:
    found = code_of(text, ENTRIES)
    assert found.why
    if found.code is not None:
        assert found.code.strip()
        assert "\r" not in found.code
        assert "\0" not in found.code
        assert found.code.encode()
    assert code_of(text.replace("\r\n", "\n").replace("\r", "\n"), ENTRIES) == found


@settings(database=None, deadline=None, max_examples=50)
@given(st.text(alphabet=st.characters(exclude_characters="`~<\0\r", exclude_categories=("Cs",)), max_size=60))
def test_prose_around_a_block_changes_nothing(prose: str) -> None:
    assert code_of(f"{prose}\n{block(CODE)}\n{prose}", ENTRIES).code == CODE
