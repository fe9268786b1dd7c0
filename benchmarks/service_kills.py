"""Is anything lost when a service is killed: many submissions by many clients, the server killed and begun again.

    python -m benchmarks.service_kills [--submissions 1000] [--clients 20] [--kills 5] [--pairs 30] [--device auto]

A real server process, ended by SIGKILL in the middle, and real requests. Then the time that the service adds to a
candidate: the same kernel judged there and by a session of this process, in turns.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import psutil

from benchmarks.script import Script, device_option, json_option, smoke_option
from kgbench import Evaluator, RemoteEvaluator
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.service.client import Client
from kgbench.service.database import Database
from kgbench.service.tokens import Rate, Tokens

PROBLEM: Final = "aten/t"
KERNELS: Final = {
    "right": ((examples_dir() / f"{PROBLEM}.py").read_text(), Outcome.PASSED),
    "wrong": ("import torch\n\ndef t(self):\n    return torch.zeros_like(self.t())\n", Outcome.WRONG_VALUE),
    "no Python": ("def t(self:\n", Outcome.COMPILE_ERROR),
    "no entry": ("def u(self):\n    return self\n", Outcome.COMPILE_ERROR),
}
"""What is submitted, with the outcome that each must get."""
_MIX: Final = ("no Python", "no entry", "no Python", "right", "no Python", "no entry", "wrong", "no Python")
"""In turn: most are cheap, so that many are judged between two kills."""
_IN_FLIGHT: Final = 5
"""Submissions that a client has without a verdict, at most."""
_PATIENCE_S: Final = 600.0


def free_port() -> int:
    """One that nobody listens at now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Server:
    """``kgbench serve`` on a folder; killed and begun again on the same port."""

    folder: Path
    device: str
    jobs: int
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[str] | None = None
    said: threading.Thread = field(default_factory=threading.Thread)
    """Reads what the process prints."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> float:
        """Seconds until it listens."""
        begun = time.monotonic()
        command = [sys.executable, "-m", "kgbench", "serve", "--port", str(self.port), "--data", str(self.folder)]
        command += ["--device", self.device, "--jobs", str(self.jobs), "--no-timing"]
        log = (self.folder / "log").open("a")
        with log:
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=log, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()  # the first one comes once it listens, or says why it does not
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            raise click.ClickException(f"the server did not begin: {line}{self.process.stderr.read()}") from None
        self.said = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.said.start()
        return time.monotonic() - begun

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self._wait()

    def _wait(self) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        self.process.wait(30)
        self.said.join()
        self.process.stderr.close()


@dataclass
class Seen:
    """What clients were told."""

    kinds: dict[str, str] = field(default_factory=dict)
    """Kind of kernel by the id that was acknowledged."""
    first: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Outcome and time of the verdict, as a client first saw them."""
    resent: int = 0
    """Submissions whose key was known: the answer to an earlier request was lost."""
    lock: threading.Lock = field(default_factory=threading.Lock)


@click.command(cls=Script)
@click.option("--submissions", default=1000, show_default=True, type=click.IntRange(min=4), help="How many in all.")
@click.option("--clients", default=20, show_default=True, type=click.IntRange(min=1), help="Each with its own token.")
@click.option("--kills", default=5, show_default=True, type=click.IntRange(min=0), help="How often SIGKILL is sent.")
@click.option("--pairs", default=30, show_default=True, type=click.IntRange(min=1),
              help="Candidates that are judged both ways for the overhead.")  # fmt: skip
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1), help="Judged there at once.")
@device_option
@json_option
@smoke_option(submissions=4, clients=2, kills=1, pairs=1, jobs=1, device="cpu")
def main(
    submissions: int, clients: int, kills: int, pairs: int, jobs: int, device: str, json_path: Path | None
) -> None:
    """What becomes of submissions when the server is killed, and milliseconds that the service adds to a candidate.

    Ends with 1 where a submission was lost, has a verdict that is not its own, or a verdict that changed.
    """
    with tempfile.TemporaryDirectory(prefix="kgbench-service-") as folder:
        server = Server(Path(folder), device, jobs)
        with contextlib.closing(Database(server.folder)) as database:
            tokens = Tokens(database)
            made = [tokens.new(f"client-{number}", Rate(1_000_000, 60)) for number in range(clients)]
        with _ending(server):
            found = _kill_trial(server, made, submissions, kills)
            found["overhead"] = _overhead(server, made[0], pairs, device)
            print(json.dumps(found["overhead"]))
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))
    sys.exit(bool(found["faults"]))


@contextlib.contextmanager
def _ending(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        server.end()


def _kill_trial(server: Server, tokens: list[str], submissions: int, kills: int) -> dict[str, Any]:
    begun, seen = time.monotonic(), Seen()
    first_s = server.begin()
    with ThreadPoolExecutor(len(tokens)) as pool:
        shares = [range(number, submissions, len(tokens)) for number in range(len(tokens))]
        clients = [Client(server.url, token, patience_s=_PATIENCE_S) for token in tokens]
        work = [pool.submit(_client, client, share, seen) for client, share in zip(clients, shares, strict=True)]
        ended = [_kill(server, number, kills, submissions) for number in range(kills)]
        for each in work:
            each.result()
    for client in clients:
        client.close()
    wall_s = time.monotonic() - begun
    faults = _faults(server, seen, submissions)
    table = {
        "submissions": submissions, "clients": len(tokens), "acknowledged": len(seen.kinds), "kills": ended,
        "first_start_s": round(first_s, 2), "answers_lost_and_sent_again": seen.resent, "wall_s": round(wall_s, 1),
        "outcomes": dict(Counter(outcome for outcome, _ in seen.first.values())), "faults": faults,
    }  # fmt: skip
    print(json.dumps(table))
    return table


def _client(client: Client, share: range, seen: Seen) -> None:
    """Hands in its share with a few in flight, so that some are always being submitted; ends with the last verdict."""
    mine: list[str] = []
    for number in share:
        if len(mine) == _IN_FLIGHT:
            _await(client, mine.pop(0), seen)
        kind = _MIX[number % len(_MIX)]
        body = {"problem": PROBLEM, "source": f"# {number}\n{KERNELS[kind][0]}", "key": f"k{number}"}
        status = client.ask("POST", "/v1/submissions", body)
        with seen.lock:
            seen.kinds[status["id"]] = kind
            seen.resent += not status["new"]
        mine.append(status["id"])
    for name in mine:
        _await(client, name, seen)


def _await(client: Client, name: str, seen: Seen) -> None:
    status = client.ask("GET", f"/v1/submissions/{name}")
    while status["state"] != "done":
        status = client.ask("GET", f"/v1/submissions/{name}?wait=20")
    with seen.lock:
        seen.first[name] = status["outcome"], status["finished"]


def _kill(server: Server, number: int, kills: int, submissions: int) -> dict[str, Any]:
    """The first time as soon as a few are taken, while the session starts; then whenever a share of verdicts is there.

    How many were done and at work, and how long nobody answered.
    """
    database = Database(server.folder)
    with contextlib.closing(database):
        wanted = submissions * number // kills
        also = "state = 'judging'" if number else "state = 'queued'"
        begun = time.monotonic()
        while _count(database, "state = 'done'") < wanted or not _count(database, also):
            time.sleep(0.001)
            if time.monotonic() - begun > _PATIENCE_S:
                raise click.ClickException("the service judges nothing any more")
        assert server.process is not None
        below = psutil.Process(server.process.pid).children(recursive=True)
        server.kill()
        row = {name: _count(database, f"state = '{name}'") for name in ("done", "judging", "queued")}
    gone, left = psutil.wait_procs(below, 20)
    row |= {"processes": len(gone) + len(left), "left_after_20_s": len(left)}
    return {**row, "answers_again_s": round(server.begin(), 2)}


def _count(database: Database, where: str) -> int:
    ((count,),) = database.read(f"SELECT count(*) FROM submissions WHERE {where}")
    return int(count)


def _faults(server: Server, seen: Seen, submissions: int) -> list[str]:
    """What must not be; empty where all is well."""
    database = Database(server.folder)
    with contextlib.closing(database):
        rows = {row["id"]: row for row in database.read("SELECT * FROM submissions")}
        faults = [f"{submissions} were handed in, and there are {len(rows)}"] * (len(rows) != submissions)
        ended = sorted(row["ended"] for row in rows.values() if row["ended"] is not None)
        faults += ["verdicts are not numbered one by one"] * (ended != list(range(1, submissions + 1)))
    for name, kind in seen.kinds.items():
        row = rows.get(name)
        if row is None or row["state"] != "done":
            faults.append(f"{name} ({kind}) was acknowledged and has no verdict")
        elif seen.first.get(name) != (row["outcome"], row["finished"]):
            faults.append(f"{name} ({kind}): the verdict was {seen.first.get(name)} and is {row['outcome']}")
        elif row["outcome"] != KERNELS[kind][1]:
            faults.append(f"{name} ({kind}) is {row['outcome']}, not {KERNELS[kind][1]}")
    return faults


def _overhead(server: Server, token: str, pairs: int, device: str) -> dict[str, Any]:
    """Of one candidate at a time, the machine otherwise idle: which way is first changes from pair to pair.

    What is compared is the time outside the referee's own, since two sessions of one machine differ by more than a
    service adds.
    """
    (text, outcome), times = KERNELS["no entry"], {"local": list[float](), "service": list[float]()}
    outside = {"local": list[float](), "service": list[float]()}
    with (
        Evaluator(device, jobs=1, timing=False) as local,
        RemoteEvaluator(server.url, token) as remote,
    ):
        ways: list[tuple[str, Evaluator | RemoteEvaluator]] = [("local", local), ("service", remote)]
        for _, way in ways:
            way.check(PROBLEM, text)  # the first one starts a referee and the library's process
        for number in range(pairs):
            for name, way in ways if number % 2 else reversed(ways):
                begun = time.perf_counter()
                found = way.check(PROBLEM, text)
                times[name].append(1e3 * (time.perf_counter() - begun))
                assert found.outcome is outcome
                outside[name].append(times[name][-1] - 1e3 * found.seconds["total"])
    more = [there - here for here, there in zip(outside["local"], outside["service"], strict=True)]
    return {
        "pairs": pairs,
        "local_ms": round(statistics.median(times["local"]), 1),
        "service_ms": round(statistics.median(times["service"]), 1),
        "outside_the_referee_ms": {name: round(statistics.median(each), 1) for name, each in outside.items()},
        "service_adds_ms": round(statistics.median(more), 1),
        "quartiles_ms": [round(each, 1) for each in _quartiles(more)],
        "alone_ms": _requests(server, token, pairs),
    }


def _requests(server: Server, token: str, count: int) -> dict[str, float]:
    """Medians of what the service itself does for a candidate: taking it, and answering a poll."""
    client, times = Client(server.url, token), {"submit": list[float](), "poll": list[float]()}
    numbers = itertools.count(os.getpid() * 1000)
    for _ in range(count):
        body = {"problem": PROBLEM, "source": KERNELS["no Python"][0], "key": f"o{next(numbers)}"}
        begun = time.perf_counter()
        status = client.ask("POST", "/v1/submissions", body)
        times["submit"].append(time.perf_counter() - begun)
        client.ask("GET", f"/v1/submissions/{status['id']}?wait=20")
        begun = time.perf_counter()
        client.ask("GET", f"/v1/submissions/{status['id']}")
        times["poll"].append(time.perf_counter() - begun)
    client.close()
    return {name: round(1e3 * statistics.median(each), 2) for name, each in times.items()}


def _quartiles(values: list[float]) -> list[float]:
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0], 0.0, values[0])
    return [low, high]


if __name__ == "__main__":
    main()
