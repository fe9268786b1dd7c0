"""A stub's copies of outputs into the memory that the referee reads."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.harness.wire import buffers  # noqa: E402
from kgbench.harness.wire.buffers import HostBuffer, TensorPlace  # noqa: E402

VALUES = torch.arange(12) * (1 + 2j)


def stored(values: torch.Tensor) -> torch.Tensor:
    """What lies in a buffer afterwards."""
    nbytes = values.numel() * values.element_size()
    dtype = str(values.dtype).removeprefix("torch.")
    buffer = HostBuffer.create(4096)
    place = TensorPlace(512, nbytes, dtype, tuple(values.shape), torch.empty(values.shape).stride(), 0)
    buffer.store(place, values)
    return buffers.tensor_at(buffer, place).clone()


def test_dense_outputs_are_copied_without_code_of_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be sampled while it copies, and PyTorch's code is held against the candidate."""
    monkeypatch.setattr(torch.Tensor, "copy_", lambda *args: pytest.fail("PyTorch copies"))
    assert torch.equal(stored(VALUES.reshape(3, 4)), VALUES.reshape(3, 4))
    assert torch.equal(stored(VALUES.real.contiguous()), VALUES.real)


@pytest.mark.parametrize("values", [VALUES.reshape(3, 4).T, VALUES.real, VALUES.conj(), VALUES.conj().imag])
def test_outputs_of_other_layouts_are_copied_by_value(values: torch.Tensor) -> None:
    assert torch.equal(stored(values), values.resolve_conj().resolve_neg())
