"""``python -m kgbench.torchtools.opinfo_table``: writes docs/opinfo-samples.md, PyTorch's sample inputs by operator.

It counts what ``kgbench run --suite opinfo`` would judge with the installed torch on a CPU. Run it when torch or a
problem of source aten has changed.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Final

from kgbench.core.errors import KgbenchError
from kgbench.core.kinds import DeviceKind
from kgbench.core.paths import IMPORT_ROOT
from kgbench.problem.registry import Registry, load_problem
from kgbench.problem.suites import Share, Suite, of_opinfo

DOCUMENT: Final = IMPORT_ROOT / "docs" / "opinfo-samples.md"
HEAD: Final = """\
# PyTorch's sample inputs, operator by operator

Written by `python -m kgbench.torchtools.opinfo_table` with torch {version} on a CPU. `kgbench run --suite opinfo`
judges these calls ([suites.md](suites.md) says how they are found). A sample counts once for each dtype that the
operator's file names, required or optional. Samples: what torch has that reaches one of the file's overloads. Used:
those that are judged. Calls: what is judged, each different one once in each overload, those with `out` among them.

{words}

| operator | samples | used | refused | calls | why refused |
|---|---:|---:|---:|---:|---|
"""
NONE: Final = "no sample of torch's reaches it"


def main() -> int:
    if len(sys.argv) > 1:
        print("usage: python -m kgbench.torchtools.opinfo_table", file=sys.stderr)
        return 2
    paths = [path for name, path in sorted(Registry().paths.items()) if name.startswith("aten/")]
    try:
        suite = of_opinfo([load_problem(path) for path in paths], DeviceKind.CPU)
        DOCUMENT.write_text(table(suite, importlib.metadata.version("torch")), encoding="utf-8")
    except (KgbenchError, OSError) as error:
        print(f"kgbench: {error}", file=sys.stderr)
        return 1
    print(f"{DOCUMENT}: {len(suite.shares)} operators")
    return 0


def table(suite: Suite, version: str) -> str:
    """The document."""
    samples, used = sum(each.samples for each in suite.shares), sum(each.used for each in suite.shares)
    words = f"{len(suite.shares)} operators: {samples} samples, {used} used, {samples - used} refused."
    rows = "".join(_row(share) for share in suite.shares)
    return HEAD.format(version=version, words=words) + rows


def _row(share: Share) -> str:
    calls = sum(map(len, share.calls.values()))
    why = "; ".join(f"{_cell(reason)} ({count})" for reason, count in share.refused.items())
    why = why if share.samples else NONE
    counts = f"{share.samples} | {share.used} | {share.samples - share.used} | {calls}"
    return f"| `{share.problem.partition('/')[2]}` | {counts} | {why} |\n"


def _cell(reason: str) -> str:
    """One line for a table's cell, with ``|`` escaped."""
    return " ".join(reason.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
