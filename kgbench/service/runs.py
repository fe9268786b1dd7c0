"""Stored runs that a service shows, without what an author may not know: hidden calls stay hidden here, too."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import KgbenchError, UsageError
from kgbench.core.types import Result
from kgbench.problem.model import Problem
from kgbench.reports.json_data import row_json
from kgbench.reports.leaderboard import Board, boards
from kgbench.reports.model import Report, report_of
from kgbench.reports.page.document import write_page
from kgbench.reports.page.ranking import write_leaderboard
from kgbench.reports.page.source import page_source
from kgbench.service.errors import ServiceError
from kgbench.service.problems import Problems
from kgbench.service.verdicts import device_facts, public_result
from kgbench.store.by_device import by_device, models_in, on_device
from kgbench.store.layout import RESULTS_FILE, RUN_FILE, candidate_path
from kgbench.store.reader import StoredRun, read_run

_INFO: Final = (
    "format", "id", "status", "started", "finished", "kgbench", "model", "samples", "rounds", "timed", "packages",
    "declared", "problem_set_sha256", "problems", "timed_s", "wall_s",
)  # fmt: skip
"""Keys of run.json that are shown: no seed, no machine, no folder, no command line."""
_KEPT: Final = 8
"""Pages that are kept in memory."""
_WHOLE_BYTES: Final = 1 << 40
"""A page is one file here, however large: the browser asks for it once."""
_State = tuple[tuple[int, int], ...]


class Runs:
    """Those below a folder; none where there is no folder. Safe from any thread."""

    def __init__(self, folder: Path | None, problems: Problems) -> None:
        self._folder = folder
        self._problems = problems
        self._lock = threading.Lock()
        self._read: dict[str, tuple[_State, StoredRun]] = {}
        self._pages: dict[tuple[str, str], tuple[_State, bytes]] = {}

    def ids(self) -> list[str]:
        """The newest first."""
        if self._folder is None:
            return []
        return sorted((file.parent.name for file in self._folder.glob(f"*/{RUN_FILE}")), reverse=True)

    def all(self) -> list[dict[str, Any]]:
        """A line of each, and one per model of device where several judged; what cannot be read is left out."""
        return [_line(part, several=len(parts) > 1) for parts in map(by_device, self._readable()) for part in parts]

    def one(self, name: str, on: str = "") -> dict[str, Any]:
        """Scores and verdicts, with ``on`` of what that model of device judged. Raises ServiceError."""
        run = _on(self._run(name), on)
        report = report_of(run)
        return {
            **_line(run, several=bool(on)),
            "scores": [row_json(row) for row in report.rows],
            "results": [result.to_json() for result in report.results],
        }

    def page(self, name: str, on: str = "") -> bytes:
        """HTML. Raises ServiceError."""
        with self._lock:
            state, key = self._state(name), (name, on)
            if key not in self._pages or self._pages[key][0] != state:
                run = _on(self._of(name), on)
                with tempfile.TemporaryDirectory(prefix="kgbench-page-") as folder:
                    file = Path(folder) / "run.html"
                    write_page(page_source(run, lambda result: ""), file, most_bytes=_WHOLE_BYTES)
                    self._pages = dict([*self._pages.items()][-_KEPT + 1 :])
                    self._pages[key] = (state, file.read_bytes())
            return self._pages[key][1]

    def boards(self) -> tuple[Board, ...]:
        return boards(_report(part) for run in self._readable() for part in by_device(run))

    def leaderboard(self) -> bytes:
        """HTML."""
        with tempfile.TemporaryDirectory(prefix="kgbench-page-") as folder:
            file = Path(folder) / "leaderboard.html"
            write_leaderboard(self.boards(), file)
            return file.read_bytes()

    def _readable(self) -> list[StoredRun]:
        found = []
        for name in self.ids():
            try:
                found.append(self._run(name))
            except KgbenchError:
                continue
        return found

    def _run(self, name: str) -> StoredRun:
        with self._lock:
            return self._of(name)

    def _of(self, name: str) -> StoredRun:
        state = self._state(name)
        kept = self._read.get(name)
        if kept is None or kept[0] != state:
            assert self._folder is not None
            kept = self._read[name] = (state, self._public(read_run(self._folder / name)))
        return kept[1]

    def _state(self, name: str) -> _State:
        """A value that changes when a run has changed since it was read. Raises ServiceError."""
        if name not in self.ids() or self._folder is None:
            raise ServiceError("KGB716", f"there is no run {name!r} here; GET /v1/runs lists those that there are", 404)
        files = (self._folder / name / RUN_FILE, self._folder / name / RESULTS_FILE)
        stats = [file.stat() for file in files if file.is_file()]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)

    def _public(self, run: StoredRun) -> StoredRun:
        peaks = (run.info.get("device") or {}).get("peaks")
        found = (self._result(run, result, peaks) for result in run.results)
        info: dict[str, Any] = {name: run.info[name] for name in _INFO if name in run.info}
        info["device"] = device_facts(run.info.get("device") or {})
        return replace(run, info=info, results=tuple(filter(None, found)), notes=())

    def _result(self, run: StoredRun, result: Result, peaks: Mapping[str, Any] | None) -> Result | None:
        """None where the problem is none of the service's, so that nobody can say what may be told."""
        try:
            problem: Problem = self._problems.load(result.problem)
        except (KgbenchError, KeyError):
            return None
        path = candidate_path(run.path, result.problem, result.sample, result.round)
        try:
            code = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            code = ""
        return public_result(problem, code, result, peaks=peaks)


def _report(run: StoredRun) -> Report:
    """The report, named by its folder's name; the folder's place is not shown."""
    return replace(report_of(run), where=run.path.name)


def _on(run: StoredRun, model: str) -> StoredRun:
    """What a model of device judged; empty where all are alike. Raises ServiceError, which names no folder."""
    try:
        return on_device(run, model)
    except UsageError:
        models = " and ".join(models_in(run.results)) or (run.info.get("device") or {}).get("name")
        words = f"{run.path.name} was judged on {models}: ask for one model of device with ?on=MODEL"
        raise ServiceError("KGB156", words, 404) from None


def _line(run: StoredRun, *, several: bool = False) -> dict[str, Any]:
    """``several``: the run is told of per model of device, and asked for with ``?on=``."""
    info = run.info
    return {
        "id": run.path.name,
        "model": str(info.get("model", "")),
        "started": info.get("started"),
        "status": info.get("status"),
        "device": (info.get("device") or {}).get("name"),
        "problems": len(info.get("problems", ())),
        "results": len(run.results),
        "on": (info.get("device") or {}).get("name", "") if several else "",
    }
