"""Where the time of timing turns goes, from the timeline of a run.

    kgbench run ... --trace FILE && python -m benchmarks.turn_parts FILE [--json FILE]

A turn is the time for which one referee has all others of its device stopped. Each moment of a turn is counted for the
innermost span that covers it, so that the parts add up to the turns; what no span covers is ``not recorded``. Also: how
long each device was held by nobody between its first turn and its last, and for how much of that somebody waited.
"""

from __future__ import annotations

import gzip
import itertools
import json
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.script import Script, json_option, smoke_option
from kgbench.core.paths import problems_dir
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.harness.session.timeline import write_timeline
from kgbench.problem.registry import load_problem

TURN: Final = "turn"
WAITING: Final = "wait for the timing lock"
Span = tuple[float, float, str]
"""Begin and end in µs, and what happens."""


@click.command(cls=Script)
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--problem", default="", help="Judge this problem's library on the CPU, in place of reading TRACE.")
@json_option
@smoke_option(problem="cublas/cublasSscal_v2")
def main(trace: Path | None, problem: str, json_path: Path | None) -> None:
    """Seconds of each part of all timing turns in TRACE, in all and for each window, and the gaps between turns."""
    if trace is None and not problem:
        raise click.UsageError("name a file that kgbench run --trace wrote")
    found = measured(events_of(trace) if trace else _own_events(problem))
    for line in _lines(found):
        print(line)
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))


def events_of(path: Path) -> list[dict[str, Any]]:
    """The events of a timeline, compressed or not."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(json.loads(text)["traceEvents"])


def measured(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What the turns of a timeline were spent on, by kind of turn, and each device's gaps."""
    names: dict[int, str] = {}
    spans: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            spans[event["pid"]].append(event)
        elif event["name"] == "process_name":
            names[event["pid"]] = event["args"]["name"]
    turns = [turn for each in spans.values() for turn in _turns(each)]
    kinds = sorted({turn["kind"] for turn in turns})
    devices: dict[str, list[int]] = defaultdict(list)
    for pid in spans:
        devices[names[pid].rpartition(" of ")[2]].append(pid)
    gaps = {device: _gaps([each for pid in pids for each in spans[pid]]) for device, pids in devices.items()}
    return {
        "turns": {kind: _summed([turn for turn in turns if turn["kind"] == kind]) for kind in kinds},
        "devices": {device: found for device, found in gaps.items() if found},
    }


def _turns(spans: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The turns of one process: kind, duration, windows, and µs by part."""
    spans = sorted(spans, key=lambda each: (each["ts"], -each["dur"]))
    for turn in [each for each in spans if each["name"] == "turn"]:
        begin, end = turn["ts"], turn["ts"] + turn["dur"]
        inner = [
            each for each in spans if each is not turn and begin - 1 < each["ts"] and each["ts"] + each["dur"] < end + 1
        ]
        windows = [each for each in inner if each["name"] == "window"]
        timed = any(each["args"]["kind"] in ("window", "single") for each in windows)
        called = any(each["name"] == "call" for each in inner)
        yield {
            "kind": "timed" if timed else "called" if called else "other",
            "us": turn["dur"],
            "windows": len(windows),
            "pairs": sum(each["args"]["kind"] == "window" and each["args"]["side"] == "candidate" for each in windows),
            "parts": parts((begin, end, "not recorded"), [_span(each) for each in inner]),
        }


def _span(event: dict[str, Any]) -> Span:
    named = f"window: {event['args']['kind']}" if event["name"] == "window" else event["name"]
    return event["ts"], event["ts"] + event["dur"], named


def parts(whole: Span, inner: list[Span]) -> dict[str, float]:
    """µs of ``whole`` by the innermost span that covers them. ``inner``: nested, in order of their begin."""
    found: Counter[str] = Counter()
    open_spans, at = [whole], whole[0]
    for span in [*inner, (whole[1], whole[1], "")]:
        while len(open_spans) > 1 and open_spans[-1][1] <= span[0]:
            _, end, name = open_spans.pop()
            found[name] += max(0.0, end - at)
            at = max(at, end)
        found[open_spans[-1][2]] += max(0.0, span[0] - at)
        at = max(at, span[0])
        open_spans.append(span)
    return dict(found)


def _summed(turns: list[dict[str, Any]]) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    for turn in turns:
        totals.update(turn["parts"])
    windows, seconds = sum(turn["windows"] for turn in turns), sum(turn["us"] for turn in turns) / 1e6
    inside_s = sum(us for name, us in totals.items() if name.startswith("window: ")) / 1e6
    return {
        "turns": len(turns),
        "seconds": seconds,
        "median_s": statistics.median(turn["us"] for turn in turns) / 1e6,
        "windows": windows,
        "pairs": sum(turn["pairs"] for turn in turns),
        "inside_windows_s": inside_s,
        "share_inside": inside_s / seconds if seconds else 0.0,
        "parts_s": {name: us / 1e6 for name, us in totals.most_common() if us},
    }


def _gaps(spans: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of a device between its first turn and its last; nothing where there is none."""
    held = _union(each for each in spans if each["name"] == TURN)
    if not held:
        return {}
    free = [(end, begin) for (_, end), (begin, _) in itertools.pairwise(held)]
    waits = _union(each for each in spans if each["name"] == WAITING)
    wanted_us = sum(max(0.0, min(b, d) - max(a, c)) for a, b in free for c, d in waits)
    return {
        "seconds": (held[-1][1] - held[0][0]) / 1e6,
        "held_s": sum(end - begin for begin, end in held) / 1e6,
        "free_s": sum(end - begin for begin, end in free) / 1e6,
        "free_but_wanted_s": wanted_us / 1e6,
        "before_the_first_s": (held[0][0] - min(each["ts"] for each in spans)) / 1e6,
    }


def _union(spans: Iterable[dict[str, Any]]) -> list[tuple[float, float]]:
    """What these spans cover, in order."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted((each["ts"], each["ts"] + each["dur"]) for each in spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for kind, each in found["turns"].items():
        yield (
            f"{kind}: {each['turns']} turns, {each['seconds']:.1f} s, median {each['median_s']:.3f} s, "
            f"{each['windows']} windows, {each['pairs']} pairs, {each['share_inside']:.0%} inside windows"
        )
        for name, seconds in each["parts_s"].items():
            count, what = (each["windows"], "window") if kind == "timed" else (each["turns"], "turn")
            yield f"  {name:<24}{seconds:9.2f} s{1e3 * seconds / count:9.2f} ms a {what}"
    for device, each in found["devices"].items():
        yield f"{device}: " + ", ".join(f"{name.replace('_', ' ')} {value:.1f}" for name, value in each.items())


def _own_events(problem: str) -> list[dict[str, Any]]:
    """The timeline of a problem's library on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        spans, file = Path(folder) / "spans", Path(folder) / "trace.json"
        spans.mkdir()
        job = Job(load_problem(problems_dir() / f"{problem}.yaml"), "baseline", trusted="baseline")
        with Session(Settings(device="cpu", jobs=1, trace_dir=spans)) as session:
            session.evaluate(job)
        write_timeline(spans, file)
        return events_of(file)


if __name__ == "__main__":
    main()
