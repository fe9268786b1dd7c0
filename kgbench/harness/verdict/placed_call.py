"""One call with places for its inputs and outputs in the memory that the referee shares with a worker."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kgbench.baselines.expected import Answer
from kgbench.core.details.where import Purpose, Where
from kgbench.harness.verdict.inputs import CallInputs, Chunk, PointerArray
from kgbench.harness.verdict.output_specs import OutputSpec
from kgbench.harness.wire.device import GPU
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import Case


@dataclass(frozen=True)
class PlacedCall:
    """One call of a case: inputs drawn, outputs expected, places in the buffer."""

    inputs: CallInputs
    specs: tuple[OutputSpec, ...]
    out_offset: int
    out_bytes: int
    listed: bool = False
    """Tensors come back in a list or tuple, even if it is one."""
    remembers: bool = False
    """Whether the call will be judged again, so that what is right is kept in ``known``."""
    known: dict[str, Answer] = field(default_factory=dict, compare=False)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what is returned, as references and mismatches have them."""
        several = len(self.specs) != 1 or self.listed
        return tuple(f"return[{index}]" if several else "return" for index in range(len(self.specs)))

    @property
    def end(self) -> int:
        return self.out_offset + self.out_bytes

    @property
    def case(self) -> Case:
        return self.inputs.bound.case

    @property
    def where(self) -> Where:
        return Where(Purpose.CALL, self.case.overload, self.case.id)

    def part(self, snapshot: torch.Tensor, of: Chunk | PointerArray) -> torch.Tensor:
        """The bytes of one argument in a snapshot."""
        begin = of.offset - self.inputs.start
        return snapshot[begin : begin + of.nbytes]

    def snapshot(self, side: WorkerSide) -> torch.Tensor:
        """uint8: a private copy of everything that the call could have touched."""
        assert side.buffer is not None
        start = self.inputs.start
        return side.buffer.bytes_at(start, self.end - start).clone()


def synchronize(device: torch.device) -> None:
    """Wait until what was written to shared memory from here has arrived."""
    if device.type == "cuda":
        GPU.wait(device)
