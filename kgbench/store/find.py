"""Finds the run folder that a user names."""

from __future__ import annotations

from pathlib import Path

from kgbench.store.errors import StoreError
from kgbench.store.layout import RUN_FILE


def find_run(spelling: str, out: Path) -> Path:
    """The run folder that ``spelling`` names: a path, ``last`` (the newest run in ``out``), or a prefix of a run's id.

    The prefix may also start after the id's first dash, because the part before the dash is only the time. Raises
    StoreError when no run or several runs match.
    """
    given = Path(spelling).expanduser()
    if spelling != "last" and (given.is_dir() or given.is_absolute()):
        return given
    names = sorted(path.parent.name for path in out.glob(f"*/{RUN_FILE}"))
    if not names:
        raise StoreError(
            "KGB404", f"there is no run '{spelling}', and none in {out}; name its folder, or where runs are: --out DIR"
        )
    if spelling == "last":
        return out / names[-1]  # sorted by time: each name begins with it
    found = [name for name in names if any(part.startswith(spelling) for part in (name, name.partition("-")[2]))]
    if len(found) == 1:
        return out / found[0]
    if found:
        raise StoreError(
            "KGB405", f"'{spelling}' means {len(found)} runs: {', '.join(found[-5:])}; write more of the id"
        )
    raise StoreError("KGB406", f"there is no run '{spelling}' in {out}; the newest are {', '.join(names[-3:])}")
