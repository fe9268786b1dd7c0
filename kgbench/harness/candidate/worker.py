"""The stub inside a worker: receives inputs, calls the entry, hands out output bytes. It knows no answer.

A candidate shares this process and may do with it what it likes, so nothing here is trusted: replies are hints that
the referee checks against memory that it owns. The library worker runs the same stub, so both sides of a
comparison pay for the same transport.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import torch

from kgbench.harness.candidate.calls import Call, as_tuple, claim, decode, dense
from kgbench.harness.candidate.compiling import note_compiling
from kgbench.harness.candidate.modules import made
from kgbench.harness.candidate.observer import Observer, seal, watched
from kgbench.harness.candidate.source import classes, describe_error, entries_of, functions, load_source
from kgbench.harness.wire.ahead import unpack
from kgbench.harness.wire.buffers import (
    ALIGNMENT_BYTES,
    ControlPage,
    SharedBuffer,
    TensorPlace,
    open_buffer,
    round_up,
)
from kgbench.harness.wire.device import GPU
from kgbench.harness.wire.protocol import Channel, ChannelClosed, Message
from kgbench.harness.wire.requests import (
    CallOnce,
    Hello,
    LoadCandidate,
    MakeModule,
    Map,
    Observe,
    Observed,
    OpenWindow,
    PlaceOutputs,
    Prepare,
    Request,
    Unmap,
)

POISON: Final = 0xFF
"""Byte that fills memory before a call, which may get that memory for its outputs."""
LATE_CYCLES: Final = 50_000_000
"""Cycles of a device doing nothing before a late call's tensors are written: some 30 ms."""
RELEASE_DEADLINE_S: Final = 120.0
"""Seconds that a window on the CPU waits for its release."""

Handlers = dict[type[Request], Callable[[Any, list[int]], Message]]
"""For each operation, the function that carries it out. It takes the request and the descriptors sent along, and
returns the reply.
"""


class Stub:
    """Answers one request after another until the channel closes."""

    def __init__(self, channel: Channel, device_kind: str, folder: Path) -> None:
        self.channel = channel
        self.device_kind = device_kind
        self.folder = folder
        self.entries: dict[str, Callable[..., Any]] = {}
        self.buffer: SharedBuffer | None = None
        self.page: ControlPage | None = None
        self.calls: list[Call] = []
        self.kept: Any = None
        self.observer: Observer | None = None
        self.least: Call
        self.compiled: IO[bytes] | None = None
        """What is compiled ahead for this candidate, while it is being written; None where nothing is."""

    def handlers(self) -> Handlers:
        """The handler of each operation."""
        return {
            Hello: self.hello,
            LoadCandidate: self.load,
            MakeModule: self.make_module,
            Map: self.map,
            Unmap: self.give_back,
            CallOnce: self.call,
            PlaceOutputs: self.place,
            Prepare: self.prepare,
            OpenWindow: self.window,
            Observe: self.observe,
            Observed: self.observed,
        }

    def serve(self) -> None:
        handlers = {kind.op: (kind, handler) for kind, handler in self.handlers().items()}
        while True:
            try:
                message, fds = self.channel.receive_with_fds()
            except ChannelClosed:
                return
            # The one broad except: whatever candidate code raises becomes a frame.
            try:
                kind, handler = handlers[message["op"]]
                reply = handler(kind.decode(message), fds)
            except BaseException as error:
                reply = {"error": describe_error(error)}
            _flush_output()
            self.channel.send({"id": message["id"], **reply})

    def hello(self, request: Hello, fds: list[int]) -> Message:
        """Initialise the device and map the control page."""
        self.page = ControlPage(fds[0])
        # The least that keeps a device busy: what a window costs is measured with it.
        self.least = Call(torch.zeros(1, device=self.device_kind).zero_, [], {}, 0, 0)
        if self.device_kind == "cuda":
            torch.zeros(1, device="cuda")
            self.page.device_address()
            GPU.wait()
            with contextlib.suppress(ImportError):
                note_compiling(self.page)
        return {"pid": os.getpid()}

    def load(self, request: LoadCandidate, fds: list[int]) -> Message:
        """Import the candidate's source and find its entries."""
        if fds:
            self.compiled = os.fdopen(fds[0], "rb")
        if request.watched:
            seal()
        module = load_source(request.source, self.folder)
        self.entries |= entries_of(module, request.entries)
        missing = [names[0] for key, names in request.entries.items() if key not in self.entries]
        defines = classes(request.source) if request.classes else functions(request.source)
        return {"missing": missing, "defines": defines[:20]}

    def make_module(self, request: MakeModule, fds: list[int]) -> Message:
        """Make the class that was loaded into a module with the state that stands in the buffer."""
        parameters, buffers = (
            {name: decode(place, self._buffer(), 0, self.device_kind) for name, place in given}
            for given in (request.parameters, request.buffers)
        )
        entry, reply = made(self.entries[request.entry], request, parameters, buffers, self.device_kind)
        self.entries[request.entry] = entry
        self._synchronize()
        return reply

    def unmap(self) -> None:
        self.calls, self.kept = [], None
        if self.buffer is not None:
            self._synchronize()
            self.buffer.release()
            self.buffer = None

    def give_back(self, request: Unmap, fds: list[int]) -> Message:
        """Unmap the buffer, and give the device what torch's allocator still holds: others need it."""
        self.unmap()
        if self.device_kind == "cuda":
            GPU.release_cached()
        return {}

    def map(self, request: Map, fds: list[int]) -> Message:
        self.unmap()
        self.buffer = open_buffer(self.device_kind, fds[0], request.nbytes)
        return {"address": self.buffer.address}

    def call(self, request: CallOnce, fds: list[int]) -> Message:
        """One call, its outputs described and kept; ``again``: with the very arguments of the one before."""
        self._take_compiled()
        call = self.kept[1] if request.again else self._bind(request)
        if request.seed is not None:
            torch.manual_seed(request.seed)
        self._poison(request.poison)
        if request.late and self.device_kind == "cuda":
            return self._late_call(call)
        return self._called(call)

    def observe(self, request: Observe, fds: list[int]) -> Message:
        """Watch all calls from now on, until ``observed`` asks for what was seen."""
        if self.observer is not None:
            self.observer.record()
        self.observer = Observer(self.device_kind, request.kernels, request.places, request.mark)
        return {"works": self.observer.works}

    def observed(self, request: Observed, fds: list[int]) -> Message:
        observer, self.observer = self.observer, None
        return {} if observer is None else observer.record()

    def _called(self, call: Call) -> Message:
        base = self._buffer().address
        # What says where a view lies is part of a view's work.
        with watched(self.observer):
            outputs = call.entry(*call.args, **call.kwargs)
            claims = [claim(output, call, base) for output in as_tuple(outputs)]
            self._synchronize()
        self.kept = (outputs, call)
        return {"outputs": claims}

    def _late_call(self, call: Call) -> Message:
        """Make the call on a separate stream, on which its tensors are still being written."""
        with GPU.another_stream():
            held = [torch.zeros_like(value) if isinstance(value, torch.Tensor) else value for value in call.args]
            GPU.idle(LATE_CYCLES)
            for copy, value in zip(held, call.args, strict=True):
                if isinstance(value, torch.Tensor):
                    copy.copy_(value)
            return self._called(call._replace(args=held))

    def _take_compiled(self) -> None:
        """Put into Triton's cache what has been compiled ahead by now. Triton compiles what it does not find there."""
        if self.compiled is not None:
            with contextlib.suppress(OSError):
                unpack(self.compiled, Path(os.environ["TRITON_CACHE_DIR"]))

    def _poison(self, sizes: Sequence[int]) -> None:
        """Fill memory of these sizes and give it back, so that what is next allocated holds nothing that is correct."""
        blocks = [torch.full((nbytes,), POISON, dtype=torch.uint8, device=self.device_kind) for nbytes in sizes]
        del blocks

    def place(self, request: PlaceOutputs, fds: list[int]) -> Message:
        """Copy what the last call returned into the output region. Its inputs may hold other values by now."""
        outputs, call = self.kept
        with watched(self.observer, placing=True):
            self._place_outputs(outputs, call.offset, call.capacity)
            self._synchronize()
        return {}

    def prepare(self, request: Prepare, fds: list[int]) -> Message:
        """Build the arguments of a window's calls, ``stride`` bytes apart, so that none of that happens inside it."""
        self.kept = None
        self.calls = [self._bind(request.call, i * request.stride) for i in range(request.calls)]
        return {}

    def window(self, request: OpenWindow, fds: list[int]) -> Message:
        """Run the first n prepared calls between two marks of the control page.

        Queued, everything is on the stream before the release, so that the device never waits for Python.
        """
        calls = [self.least] if request.overhead else self.calls[: request.calls]
        if request.queued:
            self._queued_window(calls, request.epoch)
        else:
            self._direct_window(calls, request.epoch)
        return {"done": True}

    def _queued_window(self, calls: list[Call], epoch: int) -> None:
        page = self._page()
        stream = GPU.stream()
        page.stream_wait(stream, page.RELEASE, epoch)
        outputs = [entry(*args, **kwargs) for entry, args, kwargs, _, _ in calls]
        page.stream_write(stream, page.DONE, epoch)
        for output, call in zip(outputs, calls, strict=True):
            self._place_outputs(output, call.offset, call.capacity)
        page.stream_write(stream, page.SECURED, epoch)
        self.channel.send({"id": epoch, "queued": True})
        GPU.wait()

    def _direct_window(self, calls: list[Call], epoch: int) -> None:
        page = self._page()
        self.channel.send({"id": epoch, "queued": True})
        deadline = time.monotonic() + RELEASE_DEADLINE_S
        while page.words[page.RELEASE] != epoch:
            if time.monotonic() > deadline:
                raise TimeoutError("window was never released")
        outputs = self.made(calls)
        page.words[page.DONE] = epoch
        with watched(self.observer, placing=True):
            for output, call in zip(outputs, calls, strict=True):
                self._place_outputs(output, call.offset, call.capacity)
            self._synchronize()
        page.words[page.SECURED] = epoch

    def made(self, calls: list[Call]) -> list[Any]:
        """What these calls return, once the device has finished them."""
        with watched(self.observer):
            outputs = [entry(*args, **kwargs) for entry, args, kwargs, _, _ in calls]
            self._synchronize()
        return outputs

    def _bind(self, request: CallOnce, moved: int = 0) -> Call:
        """The call as described, or ``moved`` bytes further on in the buffer."""
        buffer = self._buffer()
        args = [decode(value, buffer, moved, self.device_kind) for value in request.args]
        kwargs = {name: decode(value, buffer, moved, self.device_kind) for name, value in request.kwargs.items()}
        offset, capacity = request.out
        return Call(self.entries[request.entry], args, kwargs, offset + moved, capacity)

    def _place_outputs(self, outputs: Any, offset: int, capacity: int) -> None:
        """Copy returned tensors one after the other into the output region; what does not fit is left out."""
        for output, place in self._output_places(outputs, offset, capacity):
            self._buffer().store(place, output)

    def _output_places(self, outputs: Any, offset: int, capacity: int) -> Iterator[tuple[torch.Tensor, TensorPlace]]:
        """Each returned tensor that has elements, and its place in the output region."""
        if capacity == 0:
            return
        end = offset + capacity
        for output in self.returned(outputs):
            if type(output) is not torch.Tensor or output.device.type != self.device_kind:
                return
            nbytes = output.numel() * output.element_size()
            if offset + nbytes > end:
                return
            if nbytes:
                dtype = str(output.dtype).removeprefix("torch.")
                yield output, TensorPlace(offset, nbytes, dtype, tuple(output.shape), dense(output), 0)
            offset += round_up(nbytes, ALIGNMENT_BYTES)

    def returned(self, outputs: Any) -> Sequence[Any]:
        """What an entry returned, one by one."""
        return as_tuple(outputs)

    def _synchronize(self) -> None:
        if self.device_kind == "cuda":
            GPU.wait()

    def _buffer(self) -> SharedBuffer:
        assert self.buffer is not None
        return self.buffer

    def _page(self) -> ControlPage:
        assert self.page is not None
        return self.page


def _flush_output() -> None:
    """What a candidate printed must be in its log even if it is killed next; it may have replaced the streams."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def run(stub: Stub) -> NoReturn:
    """Serve until the channel closes, then end this process. Called in a fresh fork."""
    faulthandler.enable()
    stub.serve()
    os._exit(0)
