"""What a real worker cannot do, one attempt after the other, and who stops it; and the account that is given of it."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from kgbench.cli.run import run as run_command
from kgbench.core.errors import MachineError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import answer_dirs, problems_dir
from kgbench.harness.machine.settings import SANDBOX_LEVELS
from kgbench.harness.sandbox import cgroup, landlock, linux, seccomp
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem
from tests.harness.sessions import SessionOf

EVERYTHING: Final = Plan(
    ("mount", "pid", "net", "ipc"),
    False,
    True,
    mounts=("hidden", "private", "read-only"),
    filtered=True,
    landlock_abi=7,
    cgroup="/sys/fs/cgroup",
    controllers=("memory", "pids"),
)

CANDIDATE: Final = """
import ctypes, errno, os, resource, signal, socket, subprocess, sys, tempfile, threading
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(each) for each in arguments))
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]

def python(action):
    try:
        return action() or "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def attempt():
    {body}

def add_Tensor(self, other, *, alpha=1):
    raise RuntimeError(f"<{{attempt()}}>")

def add_Scalar(self, other, alpha=1):
    raise RuntimeError(f"<{{attempt()}}>")
"""

_COLUMN: Final = 1 if platform.machine() in ("aarch64", "arm64") else 0


def answer(session: Session, body: str) -> str:
    """What an attempt in a real worker came to."""
    source = CANDIDATE.format(body=body.replace("\n", "\n    "))
    result = session.evaluate(Job(load_problem(problems_dir() / "aten/add.yaml"), "test", source=source))
    assert result.outcome is Outcome.RUNTIME_ERROR, f"{result.outcome}: {result.reason}\n{result.log_tail}"
    return result.reason.partition("<")[2].rpartition(">")[0]


def need(session: Session, level: str) -> None:
    had = session.facts["sandbox"]["level"]
    if SANDBOX_LEVELS.index(had) < SANDBOX_LEVELS.index(level):
        missing = [what for words in session.facts["sandbox_missing"].values() for what in words]
        pytest.skip(f"needs a machine of sandbox level {level}, this is {had}; it lacks {'; '.join(missing)}")


def need_state(session: Session, name: str, words: str) -> None:
    had = session.facts["sandbox"][name]
    if words not in had:
        pytest.skip(f"needs a machine where {name} is {words!r}, here it is {had!r}")


@pytest.mark.torch
class TestAttempts:
    def test_every_refused_system_call(self, session: Session) -> None:
        """No arguments are given that could do harm, so what is not refused fails for another reason."""
        need(session, "process")
        numbers = {name: each[_COLUMN] for name, each in seccomp.REFUSED.items() if each[_COLUMN] is not None}
        # Without a privilege these fail alike with and without the filter; the program itself is tested below.
        answers = answer(
            session, f"return {{name: call(number, -1, 0, 0, 0, 0) for name, number in {numbers}.items()}}"
        )
        got: dict[str, str] = eval(answers)
        assert {name for name, error in got.items() if error != "EPERM"} == set()

    def test_what_only_root_may(self, session: Session) -> None:
        """Also where the worker is root for want of a uid of its own."""
        realtime = "python(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))"
        device = "python(lambda: os.mknod('disk', 0o600 | 0o060000, os.makedev(7, 0)))"
        had = answer(
            session, "return [line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')]"
        )
        assert set(eval(had)[:3]) == {"0" * 16}
        assert answer(session, f"return [{realtime}, {device}]") == "['EPERM', 'EPERM']"

    def test_new_namespaces_by_clone(self, session: Session) -> None:
        need(session, "process")
        number = (56, 220)[_COLUMN]
        assert answer(session, f"return call({number}, 0x10000000 | 17, 0, 0, 0, 0)") == "EPERM"

    def test_new_namespaces_by_clone3(self, session: Session) -> None:
        """Whose flags no filter reads: it is answered as by a kernel that lacks it, and threads start anyway."""
        need(session, "process")
        body = "thread = threading.Thread(target=lambda: None); thread.start(); return call(435, 0, 0, 0, 0, 0)"
        assert answer(session, body) == "ENOSYS"

    def test_files_and_descriptors_are_limited(self, session: Session) -> None:
        """A file without content takes memory of the kernel's, and so does what waits in a socket."""
        need_state(session, "files", "home too")
        places = "[os.statvfs(place).f_files for place in ('.', '/tmp', '/dev/shm')]"
        descriptors = "resource.getrlimit(resource.RLIMIT_NOFILE)[1]"
        files, most = eval(answer(session, f"return [{places}, {descriptors}]"))
        assert files == [65536] * 3
        assert most <= 4096

    @pytest.mark.parametrize("family", ["AF_VSOCK", "AF_PACKET", "AF_ALG"])
    def test_families_that_no_namespace_closes(self, session: Session, family: str) -> None:
        need(session, "process")
        assert answer(session, f"return python(lambda: socket.socket(socket.{family}).close())") == "EPERM"

    def test_limits_of_others(self, session: Session) -> None:
        need(session, "process")
        body = "return python(lambda: str(resource.prlimit(1, resource.RLIMIT_NOFILE)))"
        assert answer(session, body) == "EPERM"

    def test_what_python_and_compilers_need_still_works(self, session: Session) -> None:
        body = """
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.raise_signal(signal.SIGUSR1)
os.kill(os.getpid(), signal.SIGUSR1)
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
child = subprocess.Popen(["/bin/sh", "-c", "echo x >$TMPDIR/x; kill -9 $$"])
assert child.wait() == -9 and os.path.exists("x")
subprocess.Popen(["/bin/sleep", "9"]).kill()
assert os.sched_getaffinity(0)
resource.getrlimit(resource.RLIMIT_NOFILE)
pid = os.fork()
if pid == 0:
    os.abort()
assert os.waitpid(pid, 0)[1] & 127 == signal.SIGABRT
left, right = socket.socketpair()
open("/dev/null", "w").close()
# CUDA names its threads so, and does not start where it may not.
open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write("name")
with tempfile.TemporaryFile() as file:
    file.write(b"x")
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=8); block.close(); block.unlink()
return "well"
"""
        assert answer(session, body.strip()) == "well"

    @pytest.mark.parametrize(("family", "host"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
    def test_network(self, session: Session, family: str, host: str) -> None:
        """Not even this machine's own servers, which are there on a machine without a network too."""
        need(session, "isolated")
        with socket.socket(getattr(socket, family)) as server:
            try:
                server.bind((host, 0))
            except OSError as error:
                pytest.skip(f"needs a machine with {family}: {error}")
            server.listen()
            address = (host, server.getsockname()[1])
            body = f"return python(lambda: socket.socket(socket.{family}).connect({address}))"
            assert answer(session, body) in ("ENETUNREACH", "EADDRNOTAVAIL", "EPERM", "EACCES")

    def test_signals_to_others(self, session: Session) -> None:
        need(session, "isolated")
        assert answer(session, f"return python(lambda: os.kill({os.getpid()}, 0))") in ("ESRCH", "EPERM")

    def test_answers_kgbench_and_home_cannot_be_read(self, session: Session) -> None:
        need(session, "isolated")
        places = [str(problems_dir() / "aten/add.yaml"), str(Path(seccomp.__file__).resolve())]
        places += [str(next(folder.rglob("*.py"))) for folder in answer_dirs() if folder.name == "baselines"]
        body = f"return [python(lambda: open(place).read(1) and None) for place in {places}]"
        assert set(eval(answer(session, body))) <= {"ENOENT", "EACCES"}

    def test_only_its_own_folder_can_be_written(self, session: Session, tmp_path: Path) -> None:
        need_state(session, "writing", "only its own folder")
        tmp_path.chmod(0o777)
        (tmp_path / "open").write_text("")
        (tmp_path / "open").chmod(0o666)
        home, packages = Path.home(), Path(linux.__file__).parent
        places = [str(tmp_path / "open"), str(tmp_path / "new"), str(home / "kgbench-new"), str(packages / "new")]
        places += [os.path.join(sys.prefix, "kgbench-new"), "/var/tmp/kgbench-new", "/dev/kgbench-new"]
        body = f"return [python(lambda: open(place, 'a').write('x') and None) for place in {places}]"
        got = eval(answer(session, body))
        made = [place for place in places[1:] if os.path.exists(place)]
        for place in made:
            os.unlink(place)
        assert (set(got) <= {"ENOENT", "EACCES", "EROFS"}, made) == (True, [])
        assert (tmp_path / "open").read_text() == ""

    def test_tmp_and_shared_memory_are_its_own(self, session: Session) -> None:
        need_state(session, "files", "home too")
        need_state(session, "processes", "own PID namespace")
        for folder in ("/tmp", "/dev/shm"):
            mark = Path(folder, f"kgbench-test-{os.getpid()}")
            mark.write_text("")
            try:
                body = f"open('{folder}/kgbench-new', 'w').close(); return os.path.exists({str(mark)!r})"
                assert answer(session, body) == "False"
                assert not Path(folder, "kgbench-new").exists()
            finally:
                mark.unlink()

    def test_home_holds_nothing_but_python(self, session: Session) -> None:
        need_state(session, "files", "home too")
        need_state(session, "processes", "own PID namespace")
        mark = Path.home() / f".kgbench-test-{os.getpid()}"
        mark.write_text("key")
        try:
            assert answer(session, f"return python(lambda: open({str(mark)!r}).read())") == "ENOENT"
        finally:
            mark.unlink()

    def test_every_row_has_the_account(self, session: Session) -> None:
        source = CANDIDATE.format(body="return 1")
        job = Job(load_problem(problems_dir() / "aten/add.yaml"), "test", source=source)
        assert session.evaluate(job).sandbox == session.facts["sandbox"]

    def test_nothing_of_a_group_is_left(self, session: Session) -> None:
        answer(session, "return 1")
        try:
            parent, _ = cgroup.find()
        except OSError as error:
            pytest.skip(f"needs a writable version 2 control group: {error}")
        # One is the library worker's, one may be ending.
        names = [path.name.removeprefix(cgroup.PREFIX) for path in Path(parent).glob(f"{cgroup.PREFIX}*")]
        assert all(Path("/proc", name).exists() for name in names)


class TestFilter:
    """The program itself, run here as the kernel runs it."""

    @staticmethod
    def verdict(
        machine: str, number: int, arguments: tuple[int, ...] = (), internet: bool = True, arch: int = 0
    ) -> int:
        audit = arch or {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
        data = struct.pack("=iIQ6Q", number, audit, 0, *(*arguments, *[0] * (6 - len(arguments))))
        value, at = 0, 0
        lines = seccomp.program(machine, internet)
        while True:
            code, yes, no, constant = lines[at]
            at += 1
            if code == 0x06:
                return constant
            if code == 0x20:
                value = int(struct.unpack_from("=I", data, constant)[0])
            else:
                holds = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
                at += yes if holds else no

    @pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
    def test_refuses_its_list_and_nothing_else(self, machine: str, column: int) -> None:
        listed = {numbers[column] for numbers in seccomp.REFUSED.values()}
        refused = {number for number in range(600) if self.verdict(machine, number) == 0x00050001}
        conditional = {(41, 198)[column]}  # a socket of family 0
        assert refused == (listed - {None}) | conditional

    @pytest.mark.parametrize(
        ("number", "arguments", "internet", "allowed"),
        [
            (56, (17,), True, True),  # fork
            (56, (0x003D0F00,), True, True),  # a thread
            (56, (0x10000000 | 17,), True, False),  # a user namespace
            (56, (0x40000000 | 17,), True, False),  # a network namespace
            (41, (1,), False, True),
            (41, (2,), True, True),
            (41, (2,), False, False),
            (41, (10,), False, False),
            (41, (40,), True, False),
            (302, (0,), True, True),
            (327, (3, 0, 1, 0, 0, 0), True, True),
            (327, (3, 0, 1, 0, 0, 8), True, False),  # what of a file is in memory
            (302, (4711,), True, False),
            (0x40000000 | 101, (), True, False),  # ptrace by its x32 number
        ],
    )
    def test_looks_at_arguments(self, number: int, arguments: tuple[int, ...], internet: bool, allowed: bool) -> None:
        assert (self.verdict("x86_64", number, arguments, internet) == 0x7FFF0000) is allowed

    def test_refuses_the_calls_of_another_architecture(self) -> None:
        assert self.verdict("x86_64", 20, arch=0x40000003) == 0x00050001

    def test_numbers_are_this_machine_s(self) -> None:
        """Read from the C compiler's headers, where there are any."""
        text = "\n".join(f"{name} __NR_{name}" for name in seccomp.REFUSED)
        try:
            done = subprocess.run(
                ["cc", "-E", "-P", "-"], input=f"#include <sys/syscall.h>\n{text}", capture_output=True, text=True
            )
        except OSError:
            pytest.skip("needs a C compiler")
        if done.returncode:
            pytest.skip("needs the C library's headers")
        found = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        numbers = {name: int(value) for name, value in found.items() if value.isdigit() and name in seccomp.REFUSED}
        assert numbers
        assert numbers == {name: seccomp.REFUSED[name][_COLUMN] for name in numbers}


class TestAllBut:
    def test_hides_what_is_named_and_keeps_what_is_needed(self, tmp_path: Path) -> None:
        for name in ("home/python/lib", "home/python/vllm", "home/secret", "other"):
            (tmp_path / name).mkdir(parents=True)
            (tmp_path / name / "file").write_text("")
        (tmp_path / "link").symlink_to(tmp_path / "home")
        hidden = [str(tmp_path / "home"), str(tmp_path / "home/python/vllm")]
        allowed = [Path(path) for path in landlock.all_but(hidden, [str(tmp_path / "home/python")])]

        def readable(name: str) -> bool:
            return any((tmp_path / name).is_relative_to(path) for path in allowed)

        assert [readable(f"{name}/file") for name in ("home/python/lib", "other")] == [True, True]
        assert [readable(f"{name}/file") for name in ("home/python/vllm", "home/secret", "link")] == [False] * 3

    def test_landlock_alone_hides_a_folder(self, tmp_path: Path) -> None:
        """As where no mount namespace can be had."""
        try:
            abi = landlock.version()
        except OSError as error:
            pytest.skip(f"needs Landlock: {error}")
        for name in ("hidden", "own"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text("")

        def attempt() -> None:
            linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
            landlock.Rules(abi, [str(tmp_path / "own")], landlock.all_but([str(tmp_path / "hidden")], [])).restrict()
            Path(sys.executable).read_bytes()
            (tmp_path / "own/file").write_text("x")
            try:
                (tmp_path / "hidden/file").read_text()
            except PermissionError:
                return
            raise OSError(0, "it could be read")

        assert linux.try_in_child(attempt) is None


class TestLevels:
    @pytest.mark.parametrize(
        ("change", "level"),
        [
            ({}, "full"),
            ({"controllers": ("pids",)}, "isolated"),
            ({"own_uid": False}, "isolated"),
            ({"landlock_abi": 0}, "isolated"),
            ({"mounts": ("hidden",)}, "isolated"),
            ({"namespaces": (), "mounts": ()}, "isolated"),
            ({"namespaces": (), "mounts": (), "landlock_abi": 0}, "process"),
            ({"namespaces": (), "mounts": (), "own_uid": False, "landlock_abi": 5}, "process"),
            ({"filtered": False}, "none"),
        ],
    )
    def test_the_level_is_the_highest_of_which_nothing_is_missing(self, change: dict[str, Any], level: str) -> None:
        assert dataclasses.replace(EVERYTHING, **change).level() == level

    def test_the_account_names_what_is_open_and_why(self) -> None:
        reasons = {"namespaces": "unshare refused", "uid": "needs root", "landlock": "too old", "cgroup": "read-only"}
        states = Plan((), False, False, filtered=True, reasons=reasons).states()
        assert states["level"] == "process"
        assert states["network"] == "refused by the system call filter"
        assert states["processes"] == "VISIBLE, IN REACH, killed as a tree: unshare refused"
        assert states["files"] == "VISIBLE: unshare refused: too old"
        assert states["user"] == "SHARED: needs root"
        assert states["limits"].endswith("watched, killed above the limit: read-only")
        assert not any(state.isupper() for state in EVERYTHING.states().values())

    @pytest.mark.parametrize(
        "change",
        [
            {},
            {"namespaces": (), "filtered": False},
            {"own_uid": False},
            {"mounts": ("hidden",)},
            {"mounts": ("hidden", "private")},
            {"mounts": ("hidden", "private"), "landlock_abi": 0},
            {"mounts": (), "landlock_abi": 0},
            {"mounts": ()},
            {"filtered": False},
            {"controllers": ()},
        ],
    )
    def test_what_is_missing_is_in_capitals(self, change: dict[str, Any]) -> None:
        plan = dataclasses.replace(EVERYTHING, **change)
        in_capitals = [name for name, state in plan.states().items() if re.search(r"\b[A-Z]{4,}\b", state)]
        assert plan.open() == in_capitals

    def test_a_plan_survives_the_channel(self) -> None:
        assert Plan.from_json(EVERYTHING.to_json()) == EVERYTHING

    @pytest.mark.torch
    def test_the_command_line_hands_the_level_on(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        asked: list[str] = []

        def refuse(settings: Settings) -> Session:
            asked.append(settings.require_sandbox)
            raise MachineError("KGB315", "below")

        monkeypatch.setattr("kgbench.harness.session.session.Session", refuse)
        arguments = ["--model", "examples", "--problems", "aten/t", "--device", "cpu", "--out", str(tmp_path)]
        ended = CliRunner().invoke(run_command, [*arguments, "--require-sandbox", "isolated"])
        assert isinstance(ended.exception, MachineError)
        assert asked == ["isolated"]

    @pytest.mark.torch
    def test_below_the_required_level_nothing_runs(self, session: Session, session_of: SessionOf) -> None:
        if session.facts["sandbox"]["level"] == "full":
            pytest.skip("needs a machine below sandbox level full")
        required = session_of(Settings(device="cpu", timing=False, require_sandbox="full"))
        with pytest.raises(MachineError, match="asks for 'full'") as raised, required:
            pass
        assert raised.value.exit_code == 3
        assert "full: " in str(raised.value)


def test_removed_files_in_memory_count_as_memory(impatient: Session) -> None:
    """No process has them mapped, and no folder shows them."""
    if "home too" not in impatient.facts["sandbox"]["files"]:
        pytest.skip("needs a machine where a worker has a /tmp of its own")
    body = """
held = []
for place in ("/dev/shm", "/tmp", os.getcwd()):
    held.append(tempfile.TemporaryFile(dir=place))
    os.posix_fallocate(held[-1].fileno(), 0, 400 << 20)
threading.Event().wait(3)
return "still there"
"""
    source = CANDIDATE.format(body=body.strip().replace("\n", "\n    "))
    result = impatient.evaluate(Job(load_problem(problems_dir() / "aten/add.yaml"), "test", source=source))
    assert result.outcome is Outcome.OUT_OF_MEMORY, result.reason
