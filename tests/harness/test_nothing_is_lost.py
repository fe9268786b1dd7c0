"""Whatever ends a run, what was finished survives, nothing keeps running, and --resume does the rest.

Real processes on the CPU. Each kind of process is killed at a few random moments, or at as many as KGBENCH_KILLS says;
docs/robustness.md has the table of twenty each.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.store.reader import read_run
from tests.harness.living import (
    EXPECTED,
    KINDS,
    RESUME,
    RIGHT,
    RUN,
    WRONG,
    Field,
    ended,
    find,
    outcomes,
    segments,
    small_disk,
    wait_until,
)
from tests.sampling import has_turn

KILLS: Final = int(os.environ.get("KGBENCH_KILLS", "1"))
SPAN_S: Final = 1.5 if KILLS == 1 else 3.0
"""Moments are drawn from so long after the first process of a kind was seen.

The only moment of a kind is drawn where it surely has one still: a moment after the last costs a whole run.
"""

GUARDED: Final = ("kgbench/store/", "kgbench/harness/process/", "tests/harness/living.py")
KILLED: Final = [kind for kind in KINDS if KILLS > 1 or has_turn(f"killed {kind}", GUARDED, turns=3)]
"""Kinds in turn: each kill costs a run of its own. All of them with KGBENCH_KILLS or KGBENCH_TEST_ALL."""

AT_ONCE: Final = 2
"""Runs side by side; most of a run is waiting."""

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field.make(tmp_path)


# --- kill -9 ---


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, int], Future[str]]]:
    """What came of each kill, by kind and moment."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            (kind, moment): pool.submit(kill_once, Field.make(tmp_path_factory.mktemp("killed")), kind, moment)
            for moment in range(KILLS)
            for kind in KILLED
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.xdist_group("kills")  # all of them begin with the first; two workers would each begin them all
@pytest.mark.timeout(30 + 60 * KILLS)
@pytest.mark.parametrize("moment", range(KILLS))
@pytest.mark.parametrize("kind", KILLED)
def test_killed_process_costs_at_most_its_own_candidate(
    kills: dict[tuple[str, int], Future[str]],
    kind: str,
    moment: int,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("kill", kills[kind, moment].result())


def kill_once(field: Field, kind: str, moment: int) -> str:
    """Asserts all that must hold after one kill; what happened, in words."""
    choose = random.Random(f"{kind} {moment}")
    # Half of the coordinator's moments lie after the first result, so that there is something to keep.
    finished = (moment + 1) % 2 if kind == "coordinator" else 0
    process, victim, after_s = begin_and_kill(field, kind, choose, finished)
    if kind == "coordinator":
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert field.left_over() == []
        kept = field.only_run().results
        assert len(kept) >= finished
        done = field.resume()
        assert done.returncode == 0, done.stderr
        assert field.only_run().results[: len(kept)] == kept
        # Killed after its last result, a run has nothing left to continue.
        ended = ["running"] if "nothing to do" in done.stderr else ["killed", "finished"]
        assert segments(field.only_run())[-len(ended) :] == ended
        what = f"{len(kept)} of {len(EXPECTED)} kept, the rest by --resume"
    else:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
        assert segments(field.only_run()) == ["finished"]
        what = "every candidate judged as ever"
    found = outcomes(field.only_run())
    differing = {sample: each for sample, each in found.items() if EXPECTED[sample] is not each}
    assert set(found) == set(EXPECTED)
    assert field.left_over() == []
    assert list(Path("/tmp").glob(f"kgbench-worker-*-{victim}-*")) == []
    own = {"candidate worker": {Outcome.CRASHED}, "supervisor": {Outcome.REJECTED}}.get(kind, set())
    assert len(differing) <= 1
    assert set(differing.values()) <= own, [each.reason for each in field.only_run().results]
    if differing:
        what = f"its own candidate is {', '.join(differing.values())}"
    return f"{kind}|{moment}|{after_s:.2f}|{what}"


def begin_and_kill(
    field: Field, kind: str, choose: random.Random, finished: int
) -> tuple[subprocess.Popen[str], int, float]:
    """The run, which process of it was killed, and when: one of the kind, at a time drawn or as soon as there is one.

    The time counts from when there is one of the kind and so many candidates are finished.
    A moment after the last process of the kind is drawn again.
    """
    span_s = SPAN_S / (1 + 2 * finished)
    while True:
        after_s = choose.uniform(0.0, span_s)
        process = field.begin()
        assert wait_until(partial(_has_begun, field, process.pid, kind, finished), 60.0), process.communicate()
        time.sleep(after_s)
        while process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if found := find(process.pid, kind):
                    victim = choose.choice(found)
                    os.kill(victim, signal.SIGKILL)
                    return process, victim, after_s
        process.communicate()
        for path in field.runs():
            (path / "run.json").unlink()
        span_s = after_s


def _has_begun(field: Field, coordinator: int, kind: str, finished: int) -> bool:
    return bool(field.runs() and results_written(field) >= finished and find(coordinator, kind))


# --- the disk ---


@pytest.mark.in_turn("kgbench/store/")
@pytest.mark.slow
def test_full_disk_keeps_what_was_finished_and_resume_goes_on_once_there_is_room(field: Field) -> None:
    with small_disk(field, "size=2m") as small:
        process = small.begin()
        assert wait_until(lambda: results_written(small) >= 1, 60.0), process.communicate()
        os.kill(process.pid, signal.SIGSTOP)
        filler = Path(f"{small.seen_below}{small.out}/filler")
        fill(filler)
        kept = small.only_run().results
        os.kill(process.pid, signal.SIGCONT)
        done = ended(process)
        assert done.returncode == 3, done.stderr
        assert "No space left on device; results finished before are kept in" in done.stderr
        assert "Traceback" not in done.stderr
        assert small.left_over() == []
        assert small.only_run().results == kept
        refused = small.resume()
        assert refused.returncode == 3, refused.stderr
        assert "No space left on device" in refused.stderr
        assert "Traceback" not in refused.stderr
        filler.unlink()
        again = small.resume()
        assert again.returncode == 0, again.stderr
        assert small.only_run().results[: len(kept)] == kept
        assert outcomes(small.only_run()) == EXPECTED
        assert small.left_over() == []


def fill(path: Path) -> None:
    """Take all the room that there is, to the last page."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def results_written(field: Field) -> int:
    return sum((path / "results.jsonl").read_bytes().count(b"\n") for path in field.runs())


def test_read_only_folder_is_named_and_nothing_is_begun(field: Field) -> None:
    with small_disk(field, "ro") as shut:
        done = ended(shut.begin())
        assert done.returncode == 2
        assert f"{field.out}/2" in done.stderr
        assert "cannot write a run here: Read-only file system; give another folder with --out DIR" in done.stderr
        assert "Traceback" not in done.stderr
        assert shut.left_over() == []


@pytest.mark.in_turn("kgbench/store/")
@pytest.mark.slow
@pytest.mark.usefixtures("commands_share_it")
def test_torn_last_line_is_left_out_told_and_judged_again(tmp_path: Path) -> None:
    field = Field.make(tmp_path, (WRONG, WRONG))
    assert field.here(*RUN).returncode == 0
    run = field.only_run()
    file = run.path / "results.jsonl"
    whole = file.read_bytes()
    begin = whole.index(b"\n") + 1
    for end in (begin + 1, begin + 40, len(whole) - 1):
        file.write_bytes(whole[:end])
        torn = field.only_run()
        assert torn.results == run.results[:1]
        assert "results.jsonl:2: the last line is cut off and left out" in torn.notes[0]
    reported = field.here("report", "last")
    assert reported.returncode == 0, reported.stderr
    assert "results.jsonl:2: the last line is cut off and left out" in reported.stdout + reported.stderr
    assert file.read_bytes() == whole[:-1]  # reading repairs nothing
    again = field.here(*RESUME)
    assert again.returncode == 0, again.stderr
    assert field.only_run().results[0] == run.results[0]
    assert outcomes(field.only_run()) == {0: Outcome.WRONG_VALUE, 1: Outcome.WRONG_VALUE}
    assert file.read_bytes().startswith(whole[:begin])


# --- beside others, and the time ---

JUMPING: Final = """\
import datetime, itertools, time
_days, _time, _time_ns, _datetime = itertools.cycle((0, 1, -1, 400)), time.time, time.time_ns, datetime.datetime
time.time = lambda: _time() + 86400 * next(_days)
time.time_ns = lambda: _time_ns() + 86400 * 10**9 * next(_days)
class Jumping(_datetime):
    @classmethod
    def now(cls, tz=None):
        return _datetime.now(tz) + datetime.timedelta(days=next(_days))
datetime.datetime = Jumping
"""


@pytest.mark.in_turn("kgbench/store/")
@pytest.mark.slow
def test_two_runs_at_once_in_one_folder_while_the_clock_jumps(tmp_path: Path) -> None:
    field = Field.make(tmp_path, (RIGHT, WRONG))
    # Every process of the run imports this first: its wall clock jumps by days from one look to the next.
    (field.folder / "sitecustomize.py").write_text(JUMPING, encoding="utf-8")
    begun = time.monotonic()
    both = [field.begin(), field.begin()]
    for done in map(ended, both):
        assert done.returncode == 0, done.stderr
    passed_s = time.monotonic() - begun
    runs = [read_run(path) for path in field.runs()]
    assert [outcomes(run) for run in runs] == [{0: Outcome.PASSED, 1: Outcome.WRONG_VALUE}] * 2
    times = {text for run in runs for text in (run.info["started"], run.info["finished"])}
    assert len({text[:10] for text in times}) > 1  # it did jump
    timed = [case.timing for run in runs for result in run.results for case in result.cases if case.timing]
    assert len(timed) == 2
    seconds = [value for run in runs for result in run.results for value in result.seconds.values()]
    assert 0.0 <= min(seconds) <= max(seconds) <= passed_s, "no jump is in them"
    assert field.left_over() == []
