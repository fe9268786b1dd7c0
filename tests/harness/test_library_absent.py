"""Why a library's operator is not there, in words."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.baselines import vllm  # noqa: E402
from kgbench.baselines.registry import Unavailable  # noqa: E402


def test_an_operator_without_code_for_this_gpu_says_for_which_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    vllm._check_capability((80, 90), "vLLM's op")
    with pytest.raises(Unavailable) as raised:
        vllm._check_capability((80, 89), "vLLM's op")
    assert str(raised.value) == "vLLM's op needs compute capability 8.0 to 8.9; this GPU has 9.0"
