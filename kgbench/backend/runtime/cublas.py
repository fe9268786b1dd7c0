"""cuBLAS's routines: plain functions, since PyTorch has no place to put them.

A call that was not judged is an error here: there is no library to leave it to. That a storage is as long as sizes and
leading dimension say is the caller's promise, as it is with cuBLAS.
"""

from __future__ import annotations

import inspect
from typing import Any

from .caller import Caller
from .table import Device, Operator


class NotJudged(ValueError):
    """The call is none of those that the kernel was judged in; the text says why."""


class CublasRoutine:
    """``cublasSgemm_v2(transa, transb, m, …)``: arguments as kgbench's docs/calling-conventions.md says."""

    def __init__(self, operator: Operator, device: Device) -> None:
        self.caller = Caller(operator, device)
        self.__name__ = operator.name
        kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(each.name, kinds[not each.keyword_only]) for each in operator.parameters]
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises NotJudged."""
        bound = self.__signature__.bind(*args, **kwargs)
        values = [bound.arguments[each.name] for each in self.caller.operator.parameters]
        answer = self.caller.answer(values)
        if answer.why:
            self.caller.left(values, answer)
            raise NotJudged(f"{self.__name__}: {answer.why}")
        return self.caller.run(values)
