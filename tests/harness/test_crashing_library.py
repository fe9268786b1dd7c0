"""A library call that crashes ends the library's process alone, and is named. A real run."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("scipy_openblas32")

from tests.harness.test_lacking_routines import ROTATION, check

pytestmark = pytest.mark.torch


@pytest.mark.in_turn("kgbench/harness/clock/library.py", turns=3)
def test_a_library_call_that_crashes_is_named_with_its_problem(tmp_path: Path) -> None:
    """The signature is correct; what the file passes as n is not, and OpenBLAS reads far behind the vectors."""
    code, found = check(
        tmp_path, ROTATION.replace("(n, x", "(m, x").replace("):", "):\n    n = m // 100000000", 1),
        "arguments:\n", 'arguments:\n  n: {value: "m * 100000000"}\n', '"(n,)"', '"(m,)"', "{n:", "{m:",
        "def reference(n, x, incx, y, incy, c, s):", "def reference(x, incx, y, incy, c, s, **_):",
        "[1, 4000]", "[1, 20]", "m: 997", "m: 20", "m: 333", "m: 20", "m: 4001", "m: 20", "m: 16777216", "m: 20",
        "m: 100000}", "m: 20}", '"6 * n"', '"6 * m"', '"16 * n"', '"16 * m"',
    )  # fmt: skip
    assert (code, found["outcome"]) == (0, "passed")
    reason = found["library"]["reason"]
    assert reason.startswith("the library failed: crashed: ")
    assert "killed by SIGSEGV" in reason
    call = "cublas/cublasSrot_v2 calls openblas:cublasSrot_v2(i pi pi x x)"
    assert reason.endswith(f"; {call}: look at the key signature in its file")
