"""``python -m kgbench.torchtools.vllm_schema``: the schema with which the installed vLLM registers an operator.

Standard input is JSON ``{"operator"}``; standard output gets ``{"schema", "version"}``, or ``{"unknown"}`` with the
reason. ``kgbench new vllm`` starts it. No GPU is needed.
"""

from __future__ import annotations

import json
import sys

import torch

from kgbench.baselines import vllm
from kgbench.baselines.registry import Unavailable
from kgbench.harness.machine.processes import own_lines

NAMESPACES = ("_C", "_C_cache_ops", "_moe_C")


def main() -> None:
    # A library's output must not be mistaken for the answer.
    lines = own_lines()
    print(json.dumps(_said(str(json.loads(sys.stdin.read())["operator"]))), file=lines, flush=True)


def _said(operator: str) -> dict[str, str]:
    try:
        version = vllm.loaded_version()
    except Unavailable as error:
        return {"unknown": str(error)}
    for namespace in NAMESPACES:
        found = vllm.registered(f"{namespace}::{operator}")
        if found is not None:
            return {"schema": str(found._schema), "version": version}
    return {"unknown": f"{version} registers no {operator} in {', '.join(NAMESPACES)} of torch {torch.__version__}"}


if __name__ == "__main__":
    main()
