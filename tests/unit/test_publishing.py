"""``kgbench publish`` and RESULTS.md: what is refused, what is written, the same bytes twice, current in the tree."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.baselines.slow import why_slow
from kgbench.cli.main import main
from kgbench.core.errors import KgbenchError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.harness.session import session as session_module
from kgbench.problem.problem_set import sha256_of
from kgbench.problem.registry import Registry, load_problem
from kgbench.reports.publishing.checks import checks
from kgbench.reports.publishing.folder import publications
from kgbench.reports.publishing.results import rendered, write
from kgbench.reports.publishing.selftests import FILES, read_evidence
from kgbench.scores.light import LEAST_VERSION
from kgbench.selftest.exploits.runner import read_exploits
from kgbench.store import verification
from kgbench.store.encoding import sha256
from kgbench.store.reader import read_run
from kgbench.store.writer import RunStore
from tests.unit.made_results import result, timing
from tests.unit.test_cli_run import FakeSession
from tests.unit.test_cli_verify import again

ROOT = Path(__file__).resolve().parents[2]
TEXT = "def t(self): ...\n"
RATIOS = {"aten/softmax": 1.5, "aten/mm": 2.0, "aten/add": 0.9}
NAME = "2026-01-02-h200-mine"
NULL = {"not_timed": {"aten/add": "the clock saw no time", "aten/im2col": "skipped"}, "kept": "/caches/noise.json"}
HOST = 'File "/opt/my/.venv/lib/python3.12/site-packages/torch/x.py", line 1, on'
CHECKS = ("whole", "candidates stored", "GPU", "one device", "timed", "seeds", "problem set", "policy", "sandbox",
          "selftest null", "selftest exploits", "size")  # fmt: skip


def gpu_run(
    out: Path, *, seed: str = "s", run_id: str = "20260102T030405Z-ab12cd", ratios: dict[str, float] = RATIOS,
    **changes: Any,
) -> Path:  # fmt: skip
    """A made-up run on a GPU that is fit to be published, but for ``changes`` of run.json."""
    hashes = {name: load_problem(problems_dir() / f"{name}.yaml").sha256 for name in ratios}
    info = {
        "kgbench": "1.0", "model": "mine", "started": "2026-01-02T03:04:05+00:00", "timed": True, "suite": None,
        "seed_is_secret": True, "samples": None, "machine": {"name": "secret-host"}, "packages": {"torch": "2.13"},
        "problems": [{"id": name, "kind": "compute", "sha256": hashes[name], "own": False} for name in ratios],
        "problem_set_sha256": sha256_of(hashes.items()), "declared": {"aten": 110},
        "asked": {"folder": "/somewhere/private", "model": "dir:/somewhere/private/kernels", "policy": "strict"},
        "device": CUDA,
    }  # fmt: skip
    store = RunStore.create(out, run_id, {**info, **changes}, seed="s")
    for name, ratio in ratios.items():
        store.save_candidate(name, 0, TEXT)
        made = result(name, timing(ratio), problem_sha256=hashes[name], candidate_sha256=sha256(TEXT), seed=sha256("s"))
        store.append(replace(made, policy="strict", sandbox={"level": "isolated"}, log_tail=f"{HOST} secret-host"))
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed=seed)
    selftests(store.path)
    return store.path


def selftests(run: Path) -> None:
    head = {"status": "finished", "finished": "2026-01-02T05:00:00+00:00", "device": "NVIDIA H200"}
    rows = [{"problem": problem, "run": 0, "low": 0.99} for problem in ("aten/softmax", "aten/mm", "aten/sort")]
    (run / "selftest-null.json").write_text(json.dumps({**head, **NULL, "problems": rows}))
    caught = [{"name": each.name, "state": "caught"} for each in read_exploits()]
    (run / "selftest-exploits.json").write_text(json.dumps({**head, "rows": caught}))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return gpu_run(tmp_path / "runs")


def publish(*more: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["publish", "last", *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def each_result(of: str = "", **values: Any) -> Callable[[Path], None]:
    """``of``: the only problem whose results change."""

    def act(run: Path) -> None:
        file = run / "results.jsonl"
        results = [json.loads(line) for line in file.read_text().splitlines()]
        changed = [{**each, **values} if of in ("", each["problem"]) else each for each in results]
        file.write_text("".join(f"{json.dumps(each)}\n" for each in changed))

    return act


def info(**values: Any) -> Callable[[Path], None]:
    return lambda run: change(run / "run.json", **values)


def of_selftest(part: str, **values: Any) -> Callable[[Path], None]:
    return lambda run: change(run / f"selftest-{part}.json", **values)


def last_result_gone(run: Path) -> None:
    lines = (run / "results.jsonl").read_text().splitlines()
    (run / "results.jsonl").write_text("\n".join(lines[:-1]) + "\n")


def other_file_of_a_problem(run: Path) -> None:
    said = json.loads((run / "run.json").read_text())
    said["problems"][0]["sha256"] = "0" * 64
    pairs = [(each["id"], each["sha256"]) for each in said["problems"]]
    change(run / "run.json", problems=said["problems"], problem_set_sha256=sha256_of(pairs))
    each_result(problem_sha256="")(run)


def continued(*forget: str, **changes: Any) -> Callable[[Path], None]:
    """The run was resumed once, where ``changes`` were so; ``forget`` is not stored of its first part."""

    def act(run: Path) -> None:
        store = RunStore.reopen(run)
        store.begin(changes, seed="t", started="2026-01-02T04:10:00+00:00", command=["kgbench"])
        store.finish("finished", finished="2026-01-02T04:20:00+00:00", seed="t")
        said = json.loads((run / "run.json").read_text())
        for key in forget:
            del said["segments"][0][key]
        change(run / "run.json", segments=said["segments"])

    return act


H200, OTHER = {"name": "NVIDIA H200"}, {"name": "NVIDIA H100"}
CUDA = {"kind": "cuda", **H200, "driver": "580.82", "devices": [H200]}
GETS_THROUGH = [{"name": each.name, "state": "MISSED"} for each in read_exploits()]
NOISY = [{"problem": name, "run": 0, "low": 1.1} for name in ("aten/mm", "aten/softmax")]
QUIET = [{"problem": name, "run": 0, "low": 0.9} for name in ("aten/mm", "aten/softmax")]
BROKEN: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "interrupted": ("whole", info(status="interrupted"), "its status is interrupted"),
    "a shard": ("whole", info(asked={"shard": "1/2"}), "shard 1/2"),
    "no result": ("whole", last_result_gone, "without a result: aten/add"),
    "our failure": ("whole", each_result(outcome="harness error"), "kgbench itself failed: aten/softmax, aten/mm"),
    "ablated": ("whole", each_result(without=["floor"]), "without a defence"),
    "no text": ("candidates stored", lambda run: (run / "candidates/aten/mm.0.py").unlink(), "stored of aten/mm"),
    "other text": ("candidates stored", lambda run: (run / "candidates/aten/mm.0.py").write_text("1"), "not the one"),
    "a CPU": ("GPU", info(device={"kind": "cpu", "name": "NVIDIA H200"}), "it was made on cpu"),
    "interpreted": ("GPU", each_result(interpreted=True), "in Triton's interpreter"),
    "two devices": ("one device", info(device={"kind": "cuda", **H200, "devices": [H200, OTHER]}), "H100 and NVIDIA"),
    "other device's": ("one device", each_result(device_name="NVIDIA H100"), "NVIDIA H100 and NVIDIA H200"),
    "continued on another": ("one device", continued(device={"kind": "cuda", **OTHER}), "NVIDIA H100 and NVIDIA H200"),
    "continued, driver": ("one device", continued(device={**CUDA, "driver": "1"}), "continued with another driver"),
    "continued, torch": ("one device", continued(packages={"torch": "3"}), "continued with another packages"),
    "continued, unknown": ("one device", continued("device"), "the device of an earlier part is not stored"),
    "not timed": ("timed", info(timed=False), "nothing was timed"),
    "a suite": ("timed", info(suite="opinfo"), "the suite opinfo"),
    "known seed": ("seeds", info(seed_is_secret=False), "given beforehand"),
    "hidden seed": ("seeds", info(segments=[{"seed": None, "seed_sha256": sha256("s")}]), "1 seed not disclosed"),
    "other seed": ("seeds", info(segments=[{"seed": "x", "seed_sha256": sha256("s")}]), "does not have the hash"),
    "strange inputs": ("seeds", each_result(seed=sha256("y")), "from a seed that run.json does not have"),
    "changed problem": ("problem set", other_file_of_a_problem, "another file than this kgbench's: aten/softmax"),
    "other hash": ("problem set", info(problem_set_sha256="1"), "is not that of its problems"),
    "policy": ("policy", each_result(policy="report"), "policy report"),
    "sandbox": ("sandbox", each_result(sandbox={"level": "process"}), "level process"),
    "no null test": (
        "selftest null",
        lambda run: (run / "selftest-null.json").unlink(),
        "selftest-null.json is missing",
    ),
    "earlier": ("selftest null", of_selftest("null", finished="2026-01-01T05:00:00+00:00"), "over 12 h apart"),
    "elsewhere": ("selftest null", of_selftest("null", device="CPU"), "it is of the device CPU"),
    "noise": ("selftest null", of_selftest("null", problems=NOISY), "2 libraries"),
    "not covered": (
        "selftest null",
        of_selftest("null", problems=QUIET[:1]),
        "1 problem whose library is beaten not reached: aten/softmax",
    ),
    "cut short": ("selftest exploits", of_selftest("exploits", status="interrupted"), "not finished: interrupted"),
    "one missing": ("selftest exploits", of_selftest("exploits", rows=GETS_THROUGH[1:]), "1 exploit not tried"),
    "got through": ("selftest exploits", of_selftest("exploits", rows=GETS_THROUGH), "exploits not caught"),
    "not ours": ("selftest exploits", of_selftest("exploits", rows=3), "is not what `kgbench selftest exploits"),
}


def test_a_whole_run_holds_every_check_and_a_dry_run_writes_nothing(run: Path) -> None:
    code, output = publish("--dry-run")
    assert output.splitlines() == [f"ok     {name}" for name in CHECKS]
    assert code == 0
    assert not Path("results").exists()


@pytest.mark.parametrize("case", BROKEN)
def test_what_does_not_hold_is_named_with_its_next_step(run: Path, case: str) -> None:
    name, act, words = BROKEN[case]
    act(run)
    evidence = [read_evidence(part, run / file) for part, file in FILES.items()]
    (check,) = (each for each in checks(read_run(run), evidence) if each.name == name)
    assert words in check.wrong
    assert check.line() == f"WRONG  {name}: {check.wrong}; next: {check.step}"


def test_a_run_that_was_continued_on_the_same_device_is_whole(run: Path) -> None:
    continued()(run)
    assert publish("--dry-run")[0] == 0


def test_a_null_test_may_be_in_pieces_that_count_together(run: Path) -> None:
    whole = json.loads((run / "selftest-null.json").read_text())
    for name, rows in (("a", QUIET[:1]), ("b", QUIET[1:]), ("noisy", NOISY[:1])):
        cut = {
            **whole,
            "status": "interrupted",
            "problems": rows,
            "not_timed": whole["not_timed"] if name == "b" else {},
        }
        Path(name).write_text(json.dumps(cut))
    assert "a, b, noisy, noisy: noise alone calls 2 libraries" in publish(*pieces("a", "b", "noisy", "noisy"))[1]
    assert "a: 1 problem whose library is beaten not reached: aten/softmax" in publish(*pieces("a"))[1]
    assert publish(*pieces("a", "b"))[0] == 0
    published = json.loads(gzip.decompress((Path("results") / NAME / "selftest-null.json.gz").read_bytes()))
    assert [each["problems"] for each in published["pieces"]] == [QUIET[:1], QUIET[1:]]


def pieces(*files: str) -> list[str]:
    return [word for file in files for word in ("--null", file)]


def test_a_run_of_which_a_check_does_not_hold_is_not_published(run: Path) -> None:
    info(device={"kind": "cpu", "name": "NVIDIA H200"})(run)
    code, output = publish()
    assert "WRONG  GPU: it was made on cpu; next: run it on an NVIDIA GPU" in output
    assert "KGB431: not published: 1 of 12 checks do not hold (GPU)" in output
    assert code == 2
    assert not Path("results").exists()
    assert publish("--dry-run")[0] == 1


def test_too_much_is_not_published(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.reports.publishing.folder.MOST_BYTES", 1000)
    assert "WRONG  size: results would be" in publish()[1]


def test_published_is_a_run_that_can_be_read_and_judged_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert publish() == (0, "".join(f"ok     {name}\n" for name in CHECKS)
                         + f"results/{NAME}: written; `make results` shows it in RESULTS.md\n")  # fmt: skip
    folder = Path("results", NAME)
    assert {"run.json", "results.jsonl.gz", "page.html", "publication.json"} <= set(everything(folder))
    tail = 'File "site-packages/torch/x.py", line 1, on host'
    results = read_run(run, with_windows=True).results
    assert read_run(folder, with_windows=True).results == tuple(replace(each, log_tail=tail) for each in results)
    monkeypatch.setattr(session_module, "Session", FakeSession)
    for name in ("verify", "reproduce"):
        monkeypatch.setattr(f"kgbench.cli.{name}.check_machine", lambda: None)
    change(folder / "run.json", device={"kind": "cpu", "name": "fake"})  # there is no GPU here
    jobs = again(monkeypatch, softmax=1.5, mm=2.0, add=0.9)
    done = CliRunner().invoke(main, ["reproduce", str(folder), "--device", "cpu"])
    assert "judged again: 3 of 3 candidates" in done.output
    assert CliRunner().invoke(main, ["verify", str(folder), "--device", "cpu"]).exit_code == 0
    assert [job.source for job in jobs] == [TEXT] * 5


def test_what_is_verified_after_publishing_is_packed_behind_what_was_before(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish()
    folder = Path("results", NAME)
    monkeypatch.setattr(session_module, "Session", FakeSession)
    monkeypatch.setattr("kgbench.cli.verify.check_machine", lambda: None)
    again(monkeypatch, softmax=1.5, mm=2.0, add=0.9)
    held = (folder / "run.json").read_bytes()  # it has a hash, and is changed here since there is no GPU
    counted = []
    for _ in range(2):
        change(folder / "run.json", device={"kind": "cpu", "name": "fake"})
        assert CliRunner().invoke(main, ["verify", str(folder), "--device", "cpu"]).exit_code == 0
        (folder / "run.json").write_bytes(held)
        counted.append(len(verification.read(folder)[0]))
        write(tmp_path)
        assert not (folder / verification.FILE).exists()
        assert len(verification.read(folder)[0]) == counted[-1]
    assert counted == [2, 4]


def test_nothing_of_the_machine_is_published(run: Path) -> None:
    publish()
    for name, content in everything(Path("results", NAME)).items():
        text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
        assert not any(word in text for word in ("secret-host", "/somewhere", "/caches", "/.venv")), name
    assert json.loads(Path("results", NAME, "run.json").read_text())["asked"]["model"] == "dir:./kernels"


def test_publishing_and_rendering_twice_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    publish()
    first, text = everything(Path("results")), rendered(tmp_path / "results")
    assert "the same lies there already" in publish()[1]
    publish("--to", "other/results")
    assert everything(Path("other/results")) == first
    assert rendered(tmp_path / "other" / "results") == text
    assert f"## {NAME}" in text["RESULTS.md"]
    assert "| aten | compute | 3 (subset) | 100.0 % " in text["RESULTS.md"]
    assert "NVIDIA H200" in text["results/leaderboard.html"]


def test_another_run_under_the_same_name_is_not_overwritten(run: Path) -> None:
    publish()
    before = everything(Path("results"))
    each_result(policy="strict", log_tail="another")(run)
    code, output = publish()
    assert (code, "KGB432" in output) == (2, True)
    assert everything(Path("results")) == before
    assert publish("--as", "second")[0] == 0


def test_a_draft_is_written_with_what_is_wrong_and_never_shown(run: Path, tmp_path: Path) -> None:
    info(device={"kind": "cpu", "name": "CPU"})(run)
    code, output = publish("--draft", "drafts")
    assert code == 0, output
    (folder,) = Path("drafts").iterdir()
    assert json.loads((folder / "publication.json").read_text())["checks"]["GPU"] == "it was made on cpu"
    assert publish("--draft", "results/drafts")[0] == 2
    (tmp_path / "results").mkdir()
    folder.rename(tmp_path / "results" / folder.name)  # even where somebody puts it there
    assert "Nothing is published yet" in rendered(tmp_path / "results")["RESULTS.md"]


@pytest.mark.parametrize("name", ["run.json", "results.jsonl.gz", "candidates/aten/mm.0.py", "publication.json"])
def test_what_is_not_as_it_was_published_is_refused_with_its_name(run: Path, name: str) -> None:
    publish()
    path = Path("results", NAME, name)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(KgbenchError, match=name) as caught:
        list(publications(Path("results")))
    assert caught.value.number == "KGB434"
    path.unlink()
    if name != "publication.json":
        with pytest.raises(KgbenchError, match="it is gone"):
            list(publications(Path("results")))


def test_a_published_run_is_not_gone_on_with_or_published_again(run: Path) -> None:
    publish()
    for command in (["run", "--resume", f"results/{NAME}"], ["publish", f"results/{NAME}"]):
        done = CliRunner().invoke(main, command)
        assert (done.exit_code, "KGB430" in done.output) == (2, True), done.output
    assert not Path("results", NAME, "results.jsonl").exists()


@pytest.fixture
def later(run: Path, tmp_path: Path) -> Path:
    """A run of two kernels that were written again after the first one's verdicts, which are published."""
    wrong = json.loads((run / "results.jsonl").read_text().splitlines()[1])
    assert wrong["problem"] == "aten/mm"
    lines = (run / "results.jsonl").read_text().splitlines()
    lines[1] = json.dumps({**wrong, "outcome": "wrong value"})
    (run / "results.jsonl").write_text("\n".join(lines) + "\n")
    assert publish("--as", "mine")[0] == 0
    return gpu_run(tmp_path / "runs", run_id="20260102T040506Z-ab12cd", ratios={"aten/mm": 3.0, "aten/add": 0.8})


def test_a_later_round_is_shown_with_the_better_kernel_of_both(later: Path, tmp_path: Path) -> None:
    code, output = publish("--as", "again", "--after", f"results/{NAME}")
    assert (code, "ok     after" in output) == (0, True), output
    text = rendered(tmp_path / "results")["RESULTS.md"]
    first, both = (line.split(" | ") for line in text.splitlines() if "| aten, 3 |" in line)
    assert first[0].strip("| ") == NAME
    assert both[0].strip("| ") == f"{NAME}, after 2 rounds"
    assert "| 1, mine | 3 | 66.7 % | 33.3 % | 1.16x |" in text
    assert first[2].startswith("66.7 % ")
    assert both[2].startswith("100.0 % ")
    assert "weak" not in text
    assert "1.1" in first[4], "the geometric mean of 1.5 and 0.9"
    assert both[4].startswith("1.59x"), "that of 1.5, 3.0 and the better 0.9"
    assert "| wrong value | – | 1 | aten/mm |" in text.split("again\n")[0]
    assert text.count("| wrong value |") == 1, "the later kernel is right"
    board = rendered(tmp_path / "results")["results/leaderboard.html"]
    both_runs, one = board.split("20260102T030405Z-ab12cd")[1:]
    assert both_runs.startswith(", then 20260102T040506Z-ab12cd"), "both rounds are ahead of the first one"
    assert one.startswith("<")
    assert "mine, then mine" in board
    assert "KernelGenBench" not in text, "peers.toml is not in this folder"
    assert "README.md" not in rendered(tmp_path / "results")
    head, foot = f"# here\n<!-- results/{NAME} -->\n", "<!-- end of the table -->\nmore\n"
    (tmp_path / "README.md").write_text(f"{head}| old |\n{foot}")
    readme = rendered(tmp_path / "results")["README.md"]
    assert readme.startswith(f"{head}| source | problems | correct | fast_1 | speedup | correct after 2 rounds |")
    assert "\n| aten | 3 | 66.7 % | 33.3 % | 1.16x | 100.0 % | 66.7 % | 1.59x |" in readme
    assert readme.endswith(foot)
    (tmp_path / "README.md").write_text("<!-- results/other -->\n<!-- end of the table -->")
    with pytest.raises(KgbenchError, match="other, which is not published"):
        rendered(tmp_path / "results")
    (tmp_path / "README.md").unlink()
    (tmp_path / "results/peers.toml").write_bytes((ROOT / "results/peers.toml").read_bytes())
    assert "| AKO4all with Opus 4.6 | 83 %, 0.97x |" in rendered(tmp_path / "results")["RESULTS.md"]


def judged_with_another_file(problem: str) -> None:
    """As if the published run had been judged before the problem's file was changed."""
    folder = Path("results", NAME)
    info = json.loads((folder / "run.json").read_text())
    for each in info["problems"]:
        each["sha256"] = "0" * 64 if each["id"] == problem else each["sha256"]
    (folder / "run.json").write_text(json.dumps(info))
    published = json.loads((folder / "publication.json").read_text())
    published["files"]["run.json"] = sha256((folder / "run.json").read_text())
    (folder / "publication.json").write_text(json.dumps(published))


def test_of_a_problem_whose_file_has_changed_only_the_later_kernel_counts(later: Path, tmp_path: Path) -> None:
    judged_with_another_file("aten/add")
    assert publish("--as", "again", "--after", f"results/{NAME}")[0] == 0
    text = rendered(tmp_path / "results")["RESULTS.md"]
    assert "| problem files changed | aten/add: only the kernel of this round counts |" in text
    both = [line.split(" | ") for line in text.splitlines() if "| aten, 3 |" in line][-1]
    assert both[4].startswith("1.53x"), "the geometric mean of 1.5, 3.0 and 0.8, although 0.9 was better"


def test_what_a_later_round_leaves_out_is_published_and_not_counted(later: Path, tmp_path: Path) -> None:
    assert "KGB438" in publish("--as", "alone", "--leave-out", "aten/mm", "--dry-run")[1]
    assert "KGB438" in publish("--after", f"results/{NAME}", "--leave-out", "aten/other")[1]
    assert publish("--as", "again", "--after", f"results/{NAME}", "--leave-out", "aten/mm")[0] == 0
    again = tmp_path / "results/2026-01-02-h200-again"
    assert b"aten/mm" in gzip.decompress((again / "results.jsonl.gz").read_bytes())
    text = rendered(tmp_path / "results")["RESULTS.md"]
    assert "| left out | aten/mm: the kernel of the round before counts |" in text
    assert "interrupted before" not in text
    assert "| 2, again | 1 | 66.7 % |" in text, "the first round's kernel of aten/mm is wrong"


def test_a_page_may_be_taken_out_again(later: Path, tmp_path: Path) -> None:
    whole = rendered(tmp_path / "results")
    (tmp_path / "results" / NAME / "page.html").unlink()
    assert rendered(tmp_path / "results") == whole


def test_without_a_verdict_of_a_changed_file_a_round_does_not_follow(later: Path, tmp_path: Path) -> None:
    last_result_gone(later)
    change(later / "run.json", status="interrupted")
    gone = json.loads((later / "run.json").read_text())["problems"][-1]["id"]
    judged_with_another_file(gone)
    code, output = publish("--as", "again", "--after", f"results/{NAME}", "--dry-run")
    assert f"this one has no verdict: {gone}" in output
    assert code != 0


def test_a_later_round_may_be_interrupted_and_says_of_what_it_has_no_verdict(later: Path, tmp_path: Path) -> None:
    last_result_gone(later)
    change(later / "run.json", status="interrupted")
    gone = json.loads((later / "run.json").read_text())["problems"][-1]["id"]
    assert "WRONG  whole: its status is interrupted" in publish("--as", "alone", "--dry-run")[1]
    assert publish("--as", "again", "--after", f"results/{NAME}")[0] == 0
    text = rendered(tmp_path / "results")["RESULTS.md"]
    assert f"| interrupted before | {gone}: the kernel of the round before counts |" in text


def test_a_third_round_is_shown_behind_both_that_it_follows(later: Path, tmp_path: Path) -> None:
    assert publish("--as", "again", "--after", f"results/{NAME}")[0] == 0
    gpu_run(
        tmp_path / "runs", run_id="20260102T050607Z-ab12cd", ratios={"aten/add": 4.0, "aten/softmax": 0.5}, model="last"
    )
    assert "aten/softmax" not in (tmp_path / "results/2026-01-02-h200-again/run.json").read_text(), "it skips a round"
    assert publish("--as", "third", "--after", "results/2026-01-02-h200-again")[0] == 0
    (tmp_path / "README.md").write_text(f"<!-- results/{NAME} -->\n<!-- end of the table -->")
    files = rendered(tmp_path / "results")
    names = [line.split(" | ")[0].strip("| ") for line in files["RESULTS.md"].splitlines() if "| aten, 3 |" in line]
    assert names == [NAME, f"{NAME}, after 3 rounds"]
    rounds = [line for line in files["RESULTS.md"].splitlines() if line[:4] in ("| 1,", "| 2,", "| 3,")]
    assert [line.split(" | ")[1] for line in rounds] == ["3", "2", "2"], "kernels judged in each"
    assert rounds[-1].endswith("| 2.62x |")
    folded = files["RESULTS.md"].split("<details><summary>2026-01-02-h200-again</summary>")[1]
    assert "## 2026-01-02-h200-again" in folded.split("</details>")[0], "a round between the ends is folded"
    sections = [line.removeprefix("## ") for line in files["RESULTS.md"].splitlines() if line.startswith("## 2026")]
    assert sections == [f"{NAME}, round by round", NAME, "2026-01-02-h200-again", "2026-01-02-h200-third"]
    assert (
        "| follows | 2026-01-02-h200-again; 2 kernels written again; below, the best one of each |"
        in files["RESULTS.md"]
    )
    assert "mine, then mine, then last" in files["results/leaderboard.html"]
    assert "speedup | correct after 3 rounds | fast_1 after 3 rounds | speedup after 3 rounds |" in files["README.md"]
    assert "| aten | 3 | 66.7 % | 33.3 % | 1.16x | 100.0 % | 100.0 % | 2.62x |" in files["README.md"]
    shutil.rmtree(tmp_path / f"results/{NAME}")
    with pytest.raises(KgbenchError, match=f"follows {NAME}, which is gone"):
        rendered(tmp_path / "results")


def test_a_round_that_follows_no_such_run_is_not_published(later: Path, tmp_path: Path) -> None:
    other_device: dict[str, Any] = {"device": {"kind": "cuda", "name": "NVIDIA H100"}}
    other_problem: dict[str, Any] = {"problems": [{"id": "aten/sub", "sha256": "1"}]}
    for change_of, words in (
        (other_device, "of NVIDIA H100, the earlier run of"),
        (other_problem, "no earlier run has aten/sub"),
    ):
        before = (later / "run.json").read_text()
        change(later / "run.json", **change_of)
        code, output = publish("--after", f"results/{NAME}")
        assert (code, words in output) == (2, True), output
        (later / "run.json").write_text(before)
    assert publish("--as", "again", "--after", f"results/{NAME}")[0] == 0
    shutil.rmtree(tmp_path / "results" / NAME)
    with pytest.raises(KgbenchError, match="which is gone"):
        rendered(tmp_path / "results")


def test_results_in_the_tree_are_what_is_stored() -> None:
    for name, text in rendered(ROOT / "results").items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name}: write it anew with `make results`"


def test_a_library_that_is_beaten_many_times_is_named(run: Path, tmp_path: Path) -> None:
    fast = {**RATIOS, "aten/mm": 7.0, "aten/im2col": 8.0}
    gpu_run(tmp_path / "runs", run_id="20260102T050607Z-ab12cd", ratios=fast)
    assert publish()[0] == 0
    text = rendered(tmp_path / "results")["RESULTS.md"]
    named = "| aten/im2col | 8.00x | ATen launches a kernel for each image of the batch |\n| aten/mm | 7.00x | – |\n"
    assert f"|---|---:|---|\n{named}" in text
    done = CliRunner().invoke(main, ["report", f"results/{NAME}"])
    assert "slow library: aten/im2col, 8.00x: ATen launches a kernel for each image" in " ".join(done.output.split())


def test_why_libraries_are_slow_is_said_of_problems_that_there_are() -> None:
    assert set(why_slow()) <= set(Registry().paths)
    assert all(words and words == words.strip() and not words.endswith(".") for words in why_slow().values())


def test_the_run_of_a_package_is_published_as_a_library_and_never_ranked(run: Path, tmp_path: Path) -> None:
    assert publish("--as", "mine")[0] == 0
    other = gpu_run(tmp_path / "runs", run_id="20260102T060708Z-ab12cd", ratios={"aten/mm": 3.0}, model="flaggems")
    each_result(policy="report")(other)
    assert "WRONG  policy: policy report: aten/mm" in publish("--dry-run")[1], "a model's kernels"
    each_result(policy="report", adapted="flag_gems 5.0", model="flaggems:5.0")(other)
    code, output = publish("--as", "flaggems")
    assert (code, "ok     policy" in output) == (0, True), output
    files = rendered(tmp_path / "results")
    text, board = files["RESULTS.md"], files["results/leaderboard.html"]
    kernels, libraries = text.split("## Installed packages")
    head = "| kernels | problems of kind compute | correct | fast_1 | fast_1 (best library) | speedup |"
    assert f"{head} speedup (best library) |" in kernels
    (row,) = (line.split(" | ") for line in kernels.splitlines() if "| aten, 3 |" in line)
    assert row[3].startswith("66.7 % "), "softmax and mm"
    assert row[4].startswith("33.3 % "), "mm is slower than the package"
    assert row[5].startswith("1.39x ")
    assert row[6].startswith("0.97x "), "1.5, 2.0 / 3.0 and 0.9"
    assert "2026-01-02-h200-flaggems" not in kernels
    assert "| 2026-01-02-h200-flaggems | aten, 1 | 100.0 % " in libraries
    assert "| package | flaggems:5.0 |" in libraries
    assert "the fastest of the library and flaggems:5.0, by timed case, on the same GPU" in kernels
    assert ("fast_1 (best library)" in board, "flaggems" in board) == (True, False)
    each_result(policy="strict", adapted="flag_gems 5.0")(other)
    assert "WRONG  policy" in publish("--dry-run")[1], "packages are judged with policy report"


def test_the_run_of_a_package_may_be_interrupted_and_names_what_has_no_verdict(run: Path, tmp_path: Path) -> None:
    ratios = {"aten/add": 1.0, "aten/mm": 3.0, "aten/sub": 1.0}
    other = gpu_run(tmp_path / "runs", run_id="20260102T060708Z-ab12cd", ratios=ratios, model="flaggems")
    each_result(policy="report", adapted="flag_gems 5.0", model="flaggems:5.0")(other)
    last_result_gone(other)
    change(other / "run.json", status="interrupted")
    # Nothing was decided there, not even about the policy.
    each_result(of="aten/add", outcome="harness error", policy="")(other)
    code, output = publish("--as", "flaggems")
    assert (code, "ok     whole" in output) == (0, True), output
    text = rendered(tmp_path / "results")["RESULTS.md"]
    assert "| without a verdict | aten/add, aten/sub: counted as not correct |" in text
    (note,) = (each for each in read_run(tmp_path / "results/2026-01-02-h200-flaggems").notes if "KGB609" in each)
    assert note.endswith("It is published so, and nothing is added."), "such a folder cannot be resumed"
    assert "| 2026-01-02-h200-flaggems | aten, 3 | 33.3 % " in text
    (calls,) = (line for line in text.splitlines() if line.startswith("| 2026-01-02-h200-flaggems | 2 |"))
    assert calls == "| 2026-01-02-h200-flaggems | 2 | 2 of 2, 100.0 % | 0 | 2 | 1.73x, of 2 operators |"


def test_least_times_of_an_earlier_definition_are_named(run: Path, tmp_path: Path) -> None:
    info(least_us={"aten/mm": {"bench[0]": 50.0}}, least_version=LEAST_VERSION)(run)
    publish("--as", "new")
    info(least_us={"aten/mm": {"bench[0]": 150.0}}, least_version=None)(run)
    said = json.loads((run / "run.json").read_text())
    del said["least_version"]
    (run / "run.json").write_text(json.dumps(said))
    publish("--as", "old")
    new, old = rendered(tmp_path / "results")["RESULTS.md"].split("## 2026-01-02-h200-")[1:]
    words = ("of an earlier definition", "Without a least time: 1 timed call of aten/mm, where the library takes less")
    assert [word in new for word in words] == [False, False]
    assert [word in old for word in words] == [True, True]


def test_outcomes_that_are_not_right_are_published_as_they_are(run: Path, tmp_path: Path) -> None:
    each_result(outcome=str(Outcome.WRONG_VALUE))(run)
    publish()
    assert "| aten | compute | 3 (subset) | 0.0 % " in rendered(tmp_path / "results")["RESULTS.md"]
