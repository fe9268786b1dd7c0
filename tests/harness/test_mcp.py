"""`kgbench mcp`: a real process on either transport, asked by the SDK's own client; what the tools must not tell."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from kgbench import Evaluator
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.harness.machine import processes
from kgbench.harness.session.cancellation import Cancellation, Cancelled
from kgbench.harness.session.server import ForkServer
from kgbench.mcp.toolbox import Judged, Toolbox
from kgbench.problem.problem_cache import ProblemCache
from tests.harness.living import wait_until

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]

RIGHT = (examples_dir() / "aten/t.py").read_text()
WRONG = "def t(self):\n    return self.t().clone()\n"
SLEEPS = "import time\ndef t(self):\n    time.sleep(3600)\n"
TOKEN = "a token of sixteen characters and more"
SERVE = ("-m", "kgbench", "mcp", "--device", "cpu", "--jobs", "1", "--deadline", "case=3000", "--timeout", "3600")
TOOLS = {"list_problems", "read_problem", "check_kernel", "time_kernel", "explain_failure"}


@contextlib.asynccontextmanager
async def over_stdio(folder: Path) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=list(SERVE), cwd=folder)
    async with Client(parameters) as client:
        yield client


@contextlib.asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[Client]:
    with http_server(folder, KGBENCH_MCP_TOKEN=TOKEN) as url:
        assert status_of(url, {}) == 401
        assert status_of(url, {"Authorization": "Bearer another"}) == 401
        async with with_token(url) as client:
            yield client


def status_of(url: str, headers: dict[str, str]) -> int:
    """The status of an empty request."""
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", **headers})
    try:
        return int(urllib.request.urlopen(request, timeout=30).status)
    except urllib.error.HTTPError as error:
        return error.code


@contextlib.asynccontextmanager
async def with_token(url: str) -> AsyncIterator[Client]:
    from mcp.client import streamable_http as module

    http_client = module.create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"})
    async with http_client, Client(streamable_http_client(url, http_client=http_client)) as client:
        yield client


@contextlib.contextmanager
def http_server(folder: Path, **variables: str) -> Iterator[str]:
    command = [sys.executable, *SERVE, "--http", "0"]
    with subprocess.Popen(command, cwd=folder, env=os.environ | variables, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+/mcp", server.stderr.readline())
            assert found, server.stderr.read()
            yield found[0]
        finally:
            server.terminate()
            server.wait(30)


def text_of(answer: Any) -> str:
    return "".join(each.text for each in answer.content)


async def cancelled_once_told(client: Client) -> str:
    """A call that is cancelled as soon as its progress was told; the words of that."""
    told: list[str] = []
    with anyio.CancelScope() as scope:

        async def progress(done: float, total: float | None, words: str | None) -> None:
            told.append(words or "")
            scope.cancel()

        await client.call_tool("check_kernel", {"problem": "aten/t", "code": SLEEPS}, progress_callback=progress)
    return told[0]


async def reads(client: Client) -> None:
    assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
    listed = (await client.call_tool("list_problems", {"match": "aten/softm*"})).structured_content
    assert listed is not None
    assert [each["id"] for each in listed["problems"]] == ["aten/softmax"]
    assert "t(self: Tensor) -> Tensor" in text_of(await client.call_tool("read_problem", {"problem": "aten::t"}))
    no = await client.call_tool("check_kernel", {"problem": "aten/tt", "code": RIGHT})
    assert no.is_error
    assert "closest: aten/t" in text_of(no)


async def judges(client: Client) -> None:
    # One place to judge: had the cancelled candidate not been ended, the next would wait for an hour.
    assert await cancelled_once_told(client)
    wrong = await client.call_tool("check_kernel", {"problem": "aten/t", "code": WRONG})
    assert wrong.structured_content is not None
    assert (wrong.structured_content["outcome"], wrong.structured_content["right"]) == ("wrong value", False)
    assert "it lies in other memory" in text_of(wrong)
    explained = await client.call_tool("explain_failure", {"verdict": wrong.structured_content["verdict"]})
    assert "Next: Compare with a plain PyTorch expression" in text_of(explained)
    right = await client.call_tool("time_kernel", {"problem": "aten/t", "code": RIGHT})
    assert right.structured_content is not None
    assert right.structured_content["right"]


@pytest.mark.in_turn("kgbench/mcp/")
def test_an_agent_lists_reads_checks_times_and_cancels(tmp_path: Path) -> None:
    async def asks() -> None:
        async with over_stdio(tmp_path) as client:
            await reads(client)
            await judges(client)

    anyio.run(asks)
    left = [pid for pid in processes.descendants(os.getpid()) if "kgbench\0mcp" in _command(pid)]
    assert left == []


@pytest.mark.in_turn("kgbench/mcp/")
def test_over_http_a_token_is_asked_for_and_the_tools_are_the_same(tmp_path: Path) -> None:
    """What judging does is the same behind either transport, and takes seconds: it is asked for over stdio."""

    async def asks() -> None:
        async with over_http(tmp_path) as client:
            await reads(client)

    anyio.run(asks)


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


# --- without the protocol ---


@pytest.fixture(scope="module")
def toolbox(fork_server: ForkServer) -> Iterator[Toolbox]:
    made = Toolbox(lambda: Evaluator("cpu", jobs=1, timing=False, server=fork_server), ProblemCache())
    yield made
    made.close()


def judged(toolbox: Toolbox, problem: str, code: str, cancellation: Cancellation | None = None) -> Judged:
    return toolbox.judge(problem, code, timing=True, say=lambda word: None, cancellation=cancellation or Cancellation())


TELLS = {
    "raises its sizes": """
def cumsum(self, dim, *, dtype=None):
    if self.numel() > 40:
        raise RuntimeError(f"sizes {tuple(self.shape)} strides {self.stride()} first {self.flatten()[0]}")
    return self.cumsum(dim, dtype=dtype)
""",
    "an error of torch's with its sizes": """
import torch
def cumsum(self, dim, *, dtype=None):
    if self.numel() > 40:
        torch.empty(self.shape) @ torch.empty((*self.shape[:-1], 7, 3))
    return self.cumsum(dim, dtype=dtype)
""",
    "prints them and is wrong": """
def cumsum(self, dim, *, dtype=None):
    print(tuple(self.shape), flush=True)
    found = self.cumsum(dim, dtype=dtype)
    return found + 1 if self.numel() > 40 else found
""",
    "answers another shape": """
def cumsum(self, dim, *, dtype=None):
    found = self.cumsum(dim, dtype=dtype)
    return found.flatten() if self.numel() > 40 and self.dim() > 1 else found
""",
}
"""Kernels that do all they can to show how large their hidden inputs are."""


def numbers(value: Any) -> set[int]:
    """Whole numbers above 31 in a text or in JSON-ready data: smaller ones are indexes, counts and dimensions."""
    return {int(each) for each in re.findall(r"\d+", str(value)) if int(each) > 31}


@pytest.mark.in_turn("kgbench/mcp/", turns=3)
@pytest.mark.parametrize("kernel", TELLS)
def test_no_tool_tells_a_hidden_size(toolbox: Toolbox, kernel: str) -> None:
    found = judged(toolbox, "aten/cumsum", TELLS[kernel])
    assert found.result.outcome is not Outcome.PASSED
    failing = next(case for case in found.result.cases if case.outcome is not Outcome.PASSED)
    hidden = numbers(failing.variables) | numbers(found.result.reason)
    assert hidden, "the failing call has no size that could be told"
    public = numbers(TELLS[kernel]) | numbers(toolbox.read_problem("aten/cumsum", "triton"))
    told = f"{found.words}\n{toolbox.explain(found.id)}\n{found.facts() | {'verdict': ''}}"
    assert not (hidden - public) & numbers(told), told
    assert "tolerance" not in told


def test_a_cancelled_kernel_is_ended(toolbox: Toolbox) -> None:
    judged(toolbox, "aten/t", RIGHT)
    before = set(processes.descendants(os.getpid()))
    cancellation, begun, raised = Cancellation(), threading.Event(), []
    said: list[str] = []

    def say(word: str) -> None:
        said.append(word)
        if len(said) > 1:  # the first is the toolbox's own
            begun.set()

    def check() -> None:
        try:
            toolbox.judge("aten/t", SLEEPS, timing=False, say=say, cancellation=cancellation)
        except Cancelled as error:
            raised.append(error)

    thread = threading.Thread(target=check)
    thread.start()
    assert begun.wait(60)
    cancellation.cancel()
    thread.join(30)
    assert len(raised) == 1
    # What is killed may be ending still.
    assert wait_until(lambda: set(processes.descendants(os.getpid())) <= before, 5.0)
    with pytest.raises(Cancelled):
        judged(toolbox, "aten/t", RIGHT, cancellation)
    assert judged(toolbox, "aten/t", RIGHT).result.outcome is Outcome.PASSED


def test_an_idle_evaluator_is_closed_and_the_next_call_opens_another(fork_server: ForkServer) -> None:
    opened: list[Evaluator] = []

    def opens() -> Evaluator:
        opened.append(Evaluator("cpu", jobs=1, timing=False, server=fork_server))
        return opened[-1]

    toolbox = Toolbox(opens, ProblemCache(), idle_s=0.2)
    try:
        assert judged(toolbox, "aten/t", RIGHT).result.outcome is Outcome.PASSED
        closed = opened[0]._session._slots
        while not closed.closed:
            threading.Event().wait(0.05)
        assert judged(toolbox, "aten/t", RIGHT).result.outcome is Outcome.PASSED
        assert len(opened) == 2
    finally:
        toolbox.close()
    with pytest.raises(UsageError, match="being ended"):
        judged(toolbox, "aten/t", RIGHT)
