"""Agents as real processes: what they find, what they leave, how they are ended, what they cannot see."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from kgbench.agents.folder import example_inputs
from kgbench.agents.work import Confine
from kgbench.core.details.values import Mismatch
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import CaseResult, Result
from kgbench.harness.sandbox import landlock
from kgbench.harness.session.session import Job, Session
from kgbench.llm.conversation import NotAnswered, Prompt, Question, Reply, Sampling, Stop, Turn
from kgbench.models.provider import ModelError
from kgbench.models.providers.exec import AgentClient, provider
from kgbench.problem.registry import load_problem
from tests.unit.made_results import bench, timing

# They look at what is left of agents on the whole machine, so no other test may start some.
pytestmark = pytest.mark.xdist_group("agents")

AGENTS: Final = Path(__file__).parents[1] / "candidates" / "agents"
PROMPT: Final = Prompt("You write kernels.", (Turn("user", "Write t."),))
EXAMPLE_SHAPES: Final = (
    "import torch; names = e.names('cpu'); made = [e.inputs(each)[1] for each in names];"
    "shapes = dict(zip(names, [[list(a.shape) for a in m if isinstance(a, torch.Tensor)] for m in made]))"
)
"""Python that has the shapes of each timed call of a module ``e`` of example inputs as ``shapes``."""
RIGHT: Final = "def t(self): return self.transpose(0, 1)\n"
KEY: Final = "a key of the user"


def question(problem: str = "aten/t", timeout_s: float = 20.0, **more: Any) -> Question:
    sampling = Sampling(timeout_s=timeout_s)
    return Question(load_problem(problems_dir() / f"{problem}.yaml"), 0, 0, PROMPT, sampling, **more)


def agent(name: str, *arguments: str, confine: Confine = "best") -> AgentClient:
    program = "sh" if name.endswith(".sh") else sys.executable
    words = (program, str(AGENTS / name), *arguments)
    return AgentClient(shlex.join(words), words, confine)


def ask(name: str, *arguments: str, **more: Any) -> Reply:
    return agent(name, *arguments).ask(question(**more))


def stub(judged: list[str], outcome: Outcome | None = None) -> Callable[[str], Result]:
    """A referee that knows one correct answer."""

    def judge(text: str) -> Result:
        judged.append(text)
        if outcome is None and "transpose" in text:
            return Result("aten/t", "m", 0, Outcome.PASSED, cases=(bench(timing(2.0)),))
        mismatch = Mismatch("return", (1, 0), "1.5", "2.5", "0", 0.25, (3, 2), "float32")
        wrong = CaseResult("check-1", "", "check", "float32", {}, Outcome.WRONG_VALUE, detail=mismatch)
        return Result("aten/t", "m", 0, outcome or Outcome.WRONG_VALUE, reason="return is wrong", cases=(wrong,))

    return judge


def left_behind(mark: str) -> list[int]:
    """Processes that carry the mark in their command line, or an agent's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and mark in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def all_gone(mark: str) -> bool:
    """None is left behind; what was killed may take a moment to go."""
    deadline = time.monotonic() + 10
    while left_behind(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left_behind(mark)


def need_confined(reply: Reply, means: str = "agent confined") -> None:
    if means not in reply.facts["confined"]:
        pytest.skip(f"needs a machine where an agent is confined ({means}), here: {reply.facts['confined']}")


class TestAnswers:
    def test_on_standard_output(self) -> None:
        begun = time.monotonic()
        reply = ask("answers.sh")
        assert reply.code is None
        assert reply.text.startswith("Here it is:\n```python\ndef t(self):")
        assert (reply.stop, reply.detail, reply.facts["exit_code"]) == (Stop.END, "", 0)
        assert reply.model_id == shlex.join(("sh", f"{AGENTS}/answers.sh"))
        assert 0 < reply.seconds <= time.monotonic() - begun, "it lies within what passed here"

    def test_in_its_folder(self, tmp_path: Path) -> None:
        """And what a person wants to see of it stays."""
        reply = ask("writes.sh", folder=tmp_path / "one" / "two")
        assert (reply.code, reply.text) == (RIGHT, "done\n")
        kept = {path.name: path.read_text() for path in (tmp_path / "one" / "two").iterdir()}
        assert kept["kernel.py"] == RIGHT
        assert kept["stdout.txt"] == "done\n"
        assert json.loads(kept["agent.json"])["exit_code"] == 0

    def test_nothing_is_left_in_the_temporary_folder(self) -> None:
        before = self.folders()
        ask("writes.sh")
        deadline = time.monotonic() + 10  # whoever started it removes it, too, and may be a moment later
        while (left := self.folders() - before) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left

    def folders(self) -> set[Path]:
        return set(Path(tempfile.gettempdir()).glob("kgbench-agent-*"))

    def test_an_end_that_is_not_well_says_so(self) -> None:
        reply = provider("sh -c 'echo half; echo no key >&2; exit 3'").ask(question())
        assert (reply.text, reply.stop, reply.detail) == ("half\n", Stop.END, "exit code 3: no key")

    def test_a_command_as_a_user_writes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files that it names lie where the user stands, and it runs elsewhere."""
        monkeypatch.chdir(AGENTS)
        assert provider("sh writes.sh").ask(question()).code == RIGHT

    def test_several_at_once(self) -> None:
        asker, replies = agent("writes.sh"), []
        threads = [threading.Thread(target=lambda: replies.append(asker.ask(question()))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [reply.code for reply in replies] == [RIGHT] * 4


class TestFolder:
    def test_what_an_agent_finds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AGENT_API_KEY", KEY)
        monkeypatch.setenv("KGBENCH_SECRET", "x")
        seen = json.loads(ask("looks_around.py", problem="aten/softmax").text)
        assert seen["files"] == ["PROMPT.md", "check", "example_inputs.py", "kernel.py", "signature.json"]
        assert seen["modes"]["check"] == "0o755"
        assert seen["prompt"] == PROMPT.text
        assert seen["kernel"] == ""
        assert seen["environment"]["AGENT_API_KEY"] == KEY
        assert seen["environment"]["CUDA_VISIBLE_DEVICES"] == ""
        assert not [name for name in seen["environment"] if name.startswith("KGBENCH")]
        assert seen["pty"]

    def test_the_signature(self) -> None:
        seen = json.loads(ask("looks_around.py", problem="aten/softmax").text)["signature"]
        (entry,) = seen["entries"]
        assert (seen["problem"], entry["entry"], entry["required"]) == ("aten/softmax", "softmax_int", True)
        assert entry["parameters"][2] == {
            "name": "dtype",
            "type": "dtype | None",
            "keyword_only": False,
            "default": None,
        }
        assert entry["dtypes"] == ["float32", "float16", "bfloat16"]
        assert not {"tolerance", "reference", "fuzz"} & set(json.dumps(seen).replace('"', " ").split())

    @pytest.mark.torch
    def test_the_example_inputs(self) -> None:
        """Without kgbench: in the agent's place, where it is hidden."""
        program = (
            "import sys; sys.path.insert(0, '.'); import example_inputs as e, json;"
            f"{EXAMPLE_SHAPES}; print(json.dumps(shapes))"
        )
        made = json.loads(AgentClient("python", [sys.executable, "-c", program]).ask(question("aten/softmax")).text)
        assert made["softmax_int/cpu-1-float32"] == [[64, 1024]]

    @pytest.mark.torch
    @pytest.mark.parametrize(
        ("problem", "call", "shapes"),
        [
            ("cublas/cublasSgemm_v2", "cublasSgemm_v2/cpu-2-float32", [[6144], [8192], [12288]]),
            ("cublas/cublasSgemmBatched_64", None, None),
            ("vllm/copy_blocks", None, None),
        ],
    )
    def test_the_example_inputs_of_other_sources(
        self, problem: str, call: str | None, shapes: list[list[int]] | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = example_inputs(question(problem).problem)
        for name in [name for name in sys.modules if name.partition(".")[0] == "kgbench"]:
            monkeypatch.setitem(sys.modules, name, None)  # who imports it fails
        module = types.ModuleType("example_inputs")
        exec(compile(text, "example_inputs.py", "exec"), vars(module))
        names = {"e": module}
        exec(EXAMPLE_SHAPES, names)
        made = names["shapes"]
        assert made
        assert call is None or made[call] == shapes

    def test_example_inputs_are_honest_about_what_they_cannot_make(self) -> None:
        texts = {
            each: example_inputs(question(each).problem) for each in ("vllm/copy_blocks", "aten/t", "aten/softmax")
        }
        assert "values drawn one by one" in texts["vllm/copy_blocks"]
        assert "Nothing of this problem is timed" in texts["aten/t"]
        # The interpreter's path is the reader's own.
        assert "kgbench" not in texts["aten/softmax"].replace(sys.executable, "")
        # The cases that are judged, and not timed, stay secret.
        assert "130" not in texts["aten/softmax"]


class TestEnds:
    def test_one_that_hangs(self) -> None:
        reply = ask("hangs.sh", timeout_s=1.5)
        assert (reply.stop, reply.detail) == (Stop.CUT_OFF, "stopped after 1.5 s")
        assert reply.code == "def t(self): return 1\n"
        assert all_gone(str(AGENTS / "hangs.sh"))

    def test_one_that_floods(self) -> None:
        reply = ask("floods.sh")
        assert len(reply.text) == 10 << 20
        assert reply.text.endswith("x\nthe end\n")
        assert reply.facts["output_bytes"] == {"stdout": 30000000 + len("\nthe end\n")}

    @pytest.mark.parametrize("confine", ["best", "by landlock", "not"])
    def test_one_that_leaves_processes(self, confine: Confine) -> None:
        mark = f"kgbench-test-{os.getpid()}-{confine}"
        # They would hold its output open for five minutes.
        reply = agent("leaves_processes.py", mark, confine=confine).ask(question())
        assert (reply.text, reply.stop) == ("left\n", Stop.END)
        assert all_gone(mark)

    def test_the_run_is_ended(self) -> None:
        asker, ends = agent("hangs.sh"), []

        def wait() -> None:
            with pytest.raises(NotAnswered) as raised:
                asker.ask(question(timeout_s=60))
            ends.append(str(raised.value))

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(1.0)
        asker.close()
        thread.join(10)
        assert ends == ["the run was ended"]
        assert all_gone(str(AGENTS / "hangs.sh"))
        with pytest.raises(NotAnswered):
            asker.ask(question())

    def test_kgbench_is_killed(self) -> None:
        """Nobody is left to end it, and it ends; its folder goes, too."""
        before = set(Path(tempfile.gettempdir()).glob("kgbench-agent-*"))
        mark = f"kgbench-test-{os.getpid()}-killed"
        program = (
            "import sys; sys.path.insert(0, '.'); from tests.harness.test_agents import *;"
            f"AgentClient('x', ['sh', '-c', 'echo started; sleep 300', {mark!r}]).ask(question(timeout_s=300))"
        )
        killed = subprocess.Popen([sys.executable, "-c", program], cwd=AGENTS.parents[2])
        deadline = time.monotonic() + 20
        while not left_behind(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left_behind(mark)
        killed.kill()
        killed.wait()
        while left_behind(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert all_gone(mark)
        while (
            left := set(Path(tempfile.gettempdir()).glob("kgbench-agent-*")) - before
        ) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left

    def test_a_program_that_is_missing(self) -> None:
        with pytest.raises(ModelError, match="no program 'no-such-agent' on PATH"):
            provider("no-such-agent -p").ready()
        provider("sh -c true").ready()
        with pytest.raises(ModelError, match="write what runs it, as in 'exec:sh"):
            provider(shlex.quote(str(AGENTS / "writes.sh"))).ready()

    def test_no_room_for_its_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One reply that fails ends no run."""
        monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
        with pytest.raises(NotAnswered, match="no place to work in"):
            ask("writes.sh")

    def test_a_program_that_cannot_be_started(self, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        broken.write_text("#!/no/such/interpreter\n")
        broken.chmod(0o755)
        with pytest.raises(NotAnswered, match="could not be started: No such file"):
            provider(str(broken)).ask(question())


class TestCheck:
    def test_it_says_what_the_referee_found(self) -> None:
        judged: list[str] = []
        reply = ask("checks.sh", judge=stub(judged), checks=5)
        assert [text.split("\n")[0] for text in judged] == ["def t(self): return self", "def t(self):"]
        assert "wrong value" in reply.text
        assert reply.text.count("of 5 checks left") == 2
        assert [line for line in reply.text.splitlines() if "exit code" in line] == ["exit code 1", "exit code 0"]
        assert [check["outcome"] for check in reply.facts["checks"]] == ["wrong value", "passed"]
        assert all(len(check["sha256"]) == 64 and check["at_s"] > 0 for check in reply.facts["checks"])

    def test_more_often_than_allowed(self) -> None:
        judged: list[str] = []
        reply = ask("checks_too_often.sh", judge=stub(judged), checks=2)
        assert len(judged) == len(reply.facts["checks"]) == 2
        assert reply.facts["checks_refused"] == 4
        assert "exit code 4" in reply.text
        assert "All 2 checks are used up" in reply.text

    def test_a_run_that_only_generates(self) -> None:
        reply = ask("checks.sh", judge=None)
        assert reply.text.count("only collects kernels") == 2
        assert reply.text.count("exit code 3") == 2
        assert reply.facts["checks"] == []

    def test_a_referee_in_trouble(self) -> None:
        def judge(text: str) -> Result:
            raise RuntimeError("no device is left")

        reply = ask("checks.sh", judge=judge)
        assert reply.text.count("exit code 3") == 2
        assert "no device" not in reply.text
        assert reply.facts["checks"][0]["error"] == "RuntimeError: no device is left"

    @pytest.mark.parametrize(
        ("what", "why"),
        [
            ("link", "cannot be read"),
            ("pipe", "is not a file"),
            ("folder", "is not a file"),
            ("large", "has more than 1048576 bytes"),
            ("none", "removed kernel.py"),
        ],
    )
    def test_a_hostile_one(self, what: str, why: str, tmp_path: Path) -> None:
        """Rubbish costs nobody anything, and what it leaves is not followed anywhere."""
        answer = tmp_path / "answer.py"
        answer.write_text(RIGHT)
        judged: list[str] = []
        reply = ask("is_hostile.py", what, str(answer), judge=stub(judged))
        assert reply.facts["exit_code"] == 0
        assert "The kernel is empty" in reply.text
        assert "not UTF-8" in reply.text
        assert reply.code is None
        assert why in reply.facts["kernel"]
        assert not any("x" * 100 in text for text in judged)

    @pytest.mark.torch
    def test_with_the_referee_itself(self, session: Session) -> None:
        job = Job(load_problem(problems_dir() / "aten/t.yaml"), "agent")
        reply = ask("checks.sh", timeout_s=50, judge=lambda text: session.evaluate(replace(job, source=text)))
        assert [check["outcome"] for check in reply.facts["checks"]] == ["wrong shape", "passed"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with secrets and what an agent needs."""
    folder = tmp_path / "home"
    (folder / ".agent").mkdir(parents=True)
    (folder / ".agent" / "key").write_text(KEY)
    (folder / ".agent.json").write_text("{}")
    (folder / "diary").write_text("the user's own")
    monkeypatch.setenv("HOME", str(folder))
    return folder


class TestConfinement:
    NEEDLES: Final = ("kgbench.baselines.references.aten:softmax", "ended-run-of-somebody-else")

    def secrets(self, folder: Path) -> tuple[list[str], Path]:
        """Paths of answers, and a run's folder that is hidden."""
        run = folder / "runs"
        run.mkdir()
        (run / "results.jsonl").write_text(self.NEEDLES[1])
        return [str(problems_dir() / "aten/softmax.yaml"), str(run / "results.jsonl")], run

    def search(self, folder: Path, confine: Confine, *more: str) -> tuple[list[str], Reply]:
        paths, run = self.secrets(folder)
        # Other checkouts on this machine are nobody's to hide (docs/agents.md).
        walked = [str(each) for each in (folder, AGENTS.parents[2], Path.home())]
        lists = (json.dumps(each) for each in (self.NEEDLES, paths, walked))
        asker = agent("searches.py", *lists, *more, confine=confine)
        reply = asker.ask(question("aten/softmax", timeout_s=50, hidden=(run,)))
        assert reply.facts["exit_code"] == 0, reply
        return json.loads(reply.text), reply

    def test_a_search_of_the_disk_finds_nothing(self, tmp_path: Path) -> None:
        found, reply = self.search(tmp_path, "best", "tamper")
        need_confined(reply)
        assert found == []

    def test_the_search_is_worth_something(self, tmp_path: Path) -> None:
        """Where nothing stops it, it finds what it looks for in each of the ways that harm nobody."""
        found, reply = self.search(tmp_path, "not")
        assert reply.facts["confined"] == "agent not confined: asked not to be"
        ways = {each.partition(":")[0] for each in found}
        assert {"by name", "by walking", "by going up", "by /proc/PID/root"} <= ways
        assert sum("results.jsonl" in each for each in found) >= 2

    def test_a_folder_outside_home_and_tmp(self) -> None:
        """What is hidden by name alone."""
        if not os.access("/opt", os.W_OK):
            pytest.skip("needs to write to /opt, as root may")
        folder = Path(tempfile.mkdtemp(prefix="kgbench-test-", dir="/opt"))
        try:
            (folder / "results.jsonl").write_text("secret")
            (folder / "seen").mkdir()
            asker = provider(f"sh -c 'cat {folder}/results.jsonl'")
            open_, closed = (asker.ask(question(hidden=hidden)) for hidden in ((), (folder,)))
            need_confined(closed)
            assert (open_.text, closed.text) == ("secret", "")
        finally:
            shutil.rmtree(folder)

    def test_home(self, home: Path) -> None:
        """Empty but for what the user shows, and gone afterwards; what was shown is the user's own."""
        shown = (home / ".agent", home / ".agent.json")
        reply = ask("looks_around.py", ".agent/key", "diary", visible=shown)
        need_confined(reply, "files by mounts; own processes")
        seen = json.loads(reply.text)
        assert seen["home"] == [".agent", ".agent.json"]
        assert seen["read"] == {".agent/key": KEY, "diary": None}
        assert (home / ".agent" / "session2").read_text() == "written by the agent"
        assert seen["writes"] == {"/usr": False, "/etc": False, ".": True, "/tmp": True, str(home): True}
        assert not (home / "kgbench-was-here").exists()
        assert seen["processes"] <= 3
        # CHOWN, DAC_OVERRIDE and FOWNER at most.
        assert int(seen["capabilities"], 16) & ~0b1011 == 0

    @pytest.mark.parametrize("confine", ["best", "by landlock"])
    def test_the_network_is_open(self, confine: Confine) -> None:
        """Agents talk to their models, and find them by name."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            program = f"import socket; print(socket.create_connection(('localhost', {port}), 5).getpeername()[1])"
            reply = AgentClient("python", [sys.executable, "-c", program], confine).ask(question())
        assert (reply.text, reply.facts["exit_code"]) == (f"{port}\n", 0)

    def test_what_is_hidden_cannot_be_shown(self, tmp_path: Path) -> None:
        run = tmp_path / "run"
        run.mkdir()
        (run / "results.jsonl").write_text("secret")
        link = tmp_path / "link"
        link.symlink_to(run)
        paths = (run, run / "results.jsonl", link, problems_dir())
        asker = provider(f"sh -c 'cat {run}/* {link}/* {problems_dir()}/aten/t.yaml'")
        reply = asker.ask(question(hidden=(run,), visible=paths))
        need_confined(reply)
        assert reply.text == ""

    def test_by_landlock_alone(self, tmp_path: Path, home: Path) -> None:
        """As in a container that may not mount."""
        try:
            landlock.version()
        except OSError as error:
            pytest.skip(f"needs Landlock: {error}")
        found, reply = self.search(tmp_path, "by landlock", "tamper")
        assert "by Landlock" in reply.facts["confined"]
        assert found == []
        asker = agent("looks_around.py", ".agent/key", "diary", confine="by landlock")
        seen = json.loads(asker.ask(question(visible=(home / ".agent",))).text)
        assert seen["read"] == {".agent/key": KEY, "diary": None}
        assert (home / ".agent" / "session2").exists()
        assert seen["writes"]["/etc"] is False
