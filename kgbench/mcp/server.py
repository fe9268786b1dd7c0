"""The tools as an MCP server: names, descriptions, progress and cancellation."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from kgbench import __version__
from kgbench.core.errors import KgbenchError
from kgbench.harness.session.cancellation import Cancellation
from kgbench.mcp.toolbox import Judged, Toolbox

QUIET_S: Final = 2.0
"""Seconds after which a call that goes on is told of, and between two such notifications."""
MOST_THREADS: Final = 64
"""Calls at work or waiting for a free place at once; further ones wait for a thread."""
INSTRUCTIONS: Final = """\
Write GPU kernels and have them judged: whether they are correct, and how fast beside the library. list_problems finds
a problem, read_problem says what is asked, check_kernel says whether a kernel is correct, time_kernel how fast it is as
well, explain_failure says more about a verdict. A kernel is the whole text of one Python file. Hidden calls are secret:
their sizes, values and tolerances are never told."""
_PHASES: Final = {
    "start": "waits for the judge",
    "import": "is imported",
    "check": "is checked",
    "bench": "is timed",
    "observe": "is watched for whose work it is",
    "library": "waits for the library to load",
    "again": "is judged again alone",
}
"""Words about each phase; its detail could name a hidden call."""

_T = TypeVar("_T")
_Id = Annotated[str, Field(description="The problem's id, such as aten/softmax; other spellings are understood.")]
_Code = Annotated[str, Field(description="The whole text of one Python file that defines the problem's entry.")]
_READS: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_JUDGES: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=False, open_world_hint=False)


def server_of(toolbox: Toolbox) -> MCPServer[Any]:
    """The server; what it runs on is the caller's choice."""
    server: MCPServer[Any] = MCPServer(
        "kgbench", title="kgbench", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    calls = _Calls(toolbox)
    server.tool(annotations=_READS)(calls.list_problems)
    server.tool(annotations=_READS)(calls.read_problem)
    server.tool(annotations=_JUDGES)(calls.check_kernel)
    server.tool(annotations=_JUDGES)(calls.time_kernel)
    server.tool(annotations=_READS)(calls.explain_failure)
    return server


class _Calls:
    """One method per tool; its docstring is what the agent reads."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._limiter = anyio.CapacityLimiter(MOST_THREADS)

    async def list_problems(
        self,
        ctx: Context[Any, Any],
        source: Annotated[str, Field(description="Only aten, vllm or cublas; empty: all.")] = "",
        match: Annotated[str, Field(description="Only ids that match, for example cublas/*gemm*.")] = "",
        after: Annotated[str, Field(description="Continue after this id: `next` of the previous answer.")] = "",
        limit: Annotated[int, Field(description="Problems at most, up to 200.", ge=1)] = 50,
    ) -> dict[str, Any]:
        """List problems by id with kind, category and a line about each; `number` says how many match in all."""
        work = partial(self._toolbox.list_problems, source, match, after, limit)
        return await self._done(ctx, lambda say, cancellation: work())

    async def read_problem(
        self,
        ctx: Context[Any, Any],
        problem: _Id,
        language: Annotated[str, Field(description="triton, cuda, torch-cpp or any.")] = "triton",
    ) -> str:
        """Everything an author is told about a problem: the conventions, the contract, dtypes, the timed calls."""
        work = partial(self._toolbox.read_problem, problem, language)
        return await self._done(ctx, lambda say, cancellation: work())

    async def check_kernel(self, ctx: Context[Any, Any], problem: _Id, code: _Code) -> CallToolResult:
        """Judge whether a kernel is correct, on hidden calls. It says what is wrong, in what sort of call, and how
        much.
        """
        return await self._judged(ctx, problem, code, timing=False)

    async def time_kernel(self, ctx: Context[Any, Any], problem: _Id, code: _Code) -> CallToolResult:
        """Judge a kernel, and if it is correct time each bench call beside the library. Takes longer than a check."""
        return await self._judged(ctx, problem, code, timing=True)

    async def explain_failure(
        self,
        ctx: Context[Any, Any],
        verdict: Annotated[str, Field(description="The id that check_kernel or time_kernel gave.")],
    ) -> str:
        """Say more about a verdict: what the outcome means, where it failed, the compiler's words, what to do next."""
        return await self._done(ctx, lambda say, cancellation: self._toolbox.explain(verdict))

    async def _judged(self, ctx: Context[Any, Any], problem: str, code: str, *, timing: bool) -> CallToolResult:
        work = partial(self._toolbox.judge, problem, code, timing=timing)
        judged: Judged = await self._done(ctx, lambda say, cancellation: work(say=say, cancellation=cancellation))
        text = f"{judged.words}\nverdict: {judged.id}"
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=judged.facts())

    async def _done(self, ctx: Context[Any, Any], work: Callable[[Callable[[str], None], Cancellation], _T]) -> _T:
        """What a thread makes of it. Progress is told meanwhile; a cancelled call ends its candidate."""
        cancellation, phase = Cancellation(), ["start"]
        run = partial(work, lambda name: phase.__setitem__(0, name), cancellation)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_tell, ctx, phase)
                found = await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._limiter)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            error = _only(errors)
            raise (ToolError(error.printed) if isinstance(error, KgbenchError) else error) from None
        finally:
            # What is over already does not notice.
            cancellation.cancel()
        return found


async def _tell(ctx: Context[Any, Any], phase: list[str]) -> None:
    begun = time.monotonic()
    while True:
        await anyio.sleep(QUIET_S)
        seconds = round(time.monotonic() - begun, 1)
        await ctx.report_progress(seconds, None, f"{_PHASES.get(phase[0], 'is judged')}, {seconds:.0f} s")


def _only(errors: BaseException) -> BaseException:
    """The first error of a group, however deep."""
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return errors
