"""Which of a machine's GPUs a session takes; nvidia-smi stands in, and nothing of CUDA is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.harness.machine.devices import find_devices
from kgbench.harness.machine.gpu_lock import GpuLock
from kgbench.harness.session import pools

TWO_GPUS = """\
#!/bin/sh
echo "0, GPU-a, NVIDIA H200, 143771, 580.82"
echo "1, GPU-b, NVIDIA H200, 143771, 580.82"
"""


@pytest.mark.parametrize(
    ("device", "gpus", "taken"), [("cuda", 0, 1), ("cuda:0,1", 0, 2), ("cuda:1,0", 1, 1), ("cuda", 2, 2)]
)
def test_gpus_that_are_named_are_used(
    device: str, gpus: int, taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").write_text(TWO_GPUS)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(pools, "GpuLock", lambda uuid: GpuLock(uuid, tmp_path))
    said: list[str] = []
    held = pools.take_devices(find_devices(device), device, gpus, 0, 0, said.append)
    assert len(held) == taken
    for pool in held:
        assert pool.lock is not None
        pool.lock.release()
        pool.page.close()
