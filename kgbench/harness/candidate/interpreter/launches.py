"""Launches of Triton's interpreter: arguments and loop variables with the compiler's types, a GPU's largest grids.

The original gives a kernel Python floats and Python loop variables, which have no type, no ``to`` and no limits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

LARGEST_GRID: Final = (2**31 - 1, 65535, 65535)
"""Programs along each dimension of a grid that a GPU launches at most."""
LOOP: Final = "_kgbench_loop"
"""Name by which a rewritten kernel finds the loop with typed variables."""


class TypedScalar(NamedTuple):
    """A number with the type by which a kernel's parameter is annotated."""

    value: Any
    name: str


class Constant(int):
    """An argument of 1, which the compiler takes for a constant."""


class Launches:
    """Replacements in ``triton.runtime.interpreter``, which is ``module``."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.tl = module.tl
        self.convert = module._implicit_cvt
        self.prepare = module.GridExecutor._init_args_hst
        self.restore = module.GridExecutor._restore_args_dev
        self.run = module.InterpretedFunction.run
        self.constant = type("constant", (module.tl.tensor,), {"to": property(_lacks_to)})
        self.languages: dict[Any, list[Any]] = {}
        self.kept: dict[Any, set[str]] = {}
        """By rewritten kernel, the parameters that are tensors whatever they are given."""
        self.set_grid = module.InterpreterBuilder.set_grid_dim

    def install(self) -> None:
        """Put the replacements into the module."""
        module = self.module
        module._implicit_cvt = self._implicit_cvt
        setattr(module, LOOP, self.loop)
        module.FunctionRewriter.ast_transformer = _loop_typing(module.ASTTransformer)()
        executor = module.GridExecutor
        executor._init_args_hst = lambda each, args, kwargs: self._init_args(each, args, kwargs)
        executor._restore_args_dev = lambda each, *args: self._restore_args(each, *args)
        module.InterpreterBuilder.set_grid_dim = lambda builder, *sizes: self._set_grid_dim(builder, *sizes)
        module.InterpretedFunction.run = lambda function, *args, **kwargs: self._run(function, args, kwargs)
        module.InterpretedFunction.__call__ = lambda function, *args, **kwargs: self._call(function, args, kwargs)
        # Each 32-bit sum and product would be computed twice, for an assertion that is made with ``debug`` alone.
        options = module.interpreter_builder.options
        module.interpreter_builder.options = replace(options, sanitize_overflow=options.debug)

    # --- arguments ---

    def _implicit_cvt(self, arg: Any) -> Any:
        """An integer, float or truth value as a tensor of the type that the compiler gives it."""
        if isinstance(arg, Constant):
            return self._constant(arg)
        if isinstance(arg, TypedScalar):
            return self._scalar(arg.value, self.tl.str_to_ty(arg.name, None))
        if isinstance(arg, float):
            return self._scalar(arg, self.tl.float32)
        if isinstance(arg, int) and not isinstance(arg, bool):
            if not -(2**63) <= arg < 2**64:
                raise OverflowError(f"argument {arg} does not fit in 64 bits")
            fits = -(2**31) <= arg < 2**31
            return self._scalar(arg, self.tl.int32 if fits else self.tl.int64 if arg < 2**63 else self.tl.uint64)
        return self.convert(arg)

    def _scalar(self, value: Any, dtype: Any) -> Any:
        with np.errstate(over="ignore"):
            if dtype.name == "bf16":
                handle = self.module.interpreter_builder.get_bf16(value)
            else:
                handle = self.module.TensorHandle(np.array([value]).astype(self.module._get_np_dtype(dtype)), dtype)
        return self.tl.tensor(handle, dtype)

    def _constant(self, value: int) -> Any:
        """A tensor without ``to``. A Python number would be made a tensor in each operation."""
        made = self._scalar(value, self.tl.int32)
        made.__class__ = self.constant
        return made

    def _init_args(self, executor: Any, args: Any, kwargs: Any) -> Any:
        """Tensors of the host's are used where they lie; the original copies them onto themselves by PyTorch."""
        annotated, kept = self._annotated(executor), self.kept.get(executor.fn, ())
        named = zip(executor.arg_names, args, strict=False)
        args = [self._typed(arg, annotated.get(name), name in kept) for name, arg in named]
        kwargs = {name: self._typed(arg, annotated.get(name), name in kept) for name, arg in kwargs.items()}
        if all(map(_on_host, (*args, *kwargs.values()))):
            return args, kwargs
        return self.prepare(executor, args, kwargs)

    def _restore_args(self, executor: Any, args: Any, args_host: Any, kwargs: Any, kwargs_host: Any) -> None:
        if not all(map(_on_host, (*args, *kwargs.values()))):
            self.restore(executor, args, args_host, kwargs, kwargs_host)

    def _typed(self, arg: Any, annotation: str | None, is_kept: bool) -> Any:
        if annotation and isinstance(arg, (bool, int, float)):
            return TypedScalar(arg, annotation)
        return Constant(arg) if type(arg) is int and arg == 1 and not is_kept else arg

    def _annotated(self, executor: Any) -> dict[str, str]:
        """Types by which parameters of numbers are annotated, such as ``fp64`` and ``i64``."""
        from triton.runtime.jit import _normalize_ty, type_canonicalisation_dict

        names = {each for each in type_canonicalisation_dict.values() if not each.startswith("*")}
        found = {}
        for name, annotation in getattr(executor.fn, "__annotations__", {}).items():
            written = _normalize_ty(annotation)
            if written in names:
                found[name] = written
        return found

    # --- functions, grids and loops ---

    def _run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """A launch. At the first one it is noted which parameters the kernel's decorator names, or numbers."""
        kernel = function.rewrite()
        if kernel not in self.kept:
            said = function.kwargs.get("do_not_specialize") or ()
            self.kept[kernel] = {each if isinstance(each, str) else function.arg_names[each] for each in said}
        return self.run(function, *args, **kwargs)

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """A kernel's call of another function. The original replaces all of ``triton.language`` each time."""
        if not all(lang.static_print is print for lang in self._languages(function.fn)):
            self.module._patch_lang(function.fn)
        try:
            return function.rewrite()(*args, **kwargs)
        except Exception as error:
            raise self.module.InterpreterError(repr(error)) from error

    def _languages(self, function: Any) -> list[Any]:
        """The modules that a function finds Triton's language in, of which the interpreter replaces the contents."""
        found = self.languages.get(function)
        if found is None:
            modules = (self.tl, self.tl.core)
            found = [value for value in function.__globals__.values() if any(value is each for each in modules)]
            self.languages[function] = found
        return found

    def _set_grid_dim(self, builder: Any, *sizes: Any) -> None:
        for axis, (size, largest) in enumerate(zip(sizes, LARGEST_GRID, strict=True)):
            if int(size) > largest:
                raise ValueError(f"grid has {int(size)} programs along axis {axis}; a GPU launches at most {largest}")
        self.set_grid(builder, *sizes)

    def loop(self, first: Any, end: Any = None, step: Any = None, **options: Any) -> Iterator[Any]:
        """``range`` and ``tl.range`` in a kernel: the variable is a scalar of the bounds' common type."""
        semantic = self.module.interpreter_semantic
        bounds = [0, first, 1] if end is None else [first, end, 1 if step is None else step]
        tensors = [semantic.to_tensor(bound) for bound in bounds]
        dtype = tensors[0].dtype
        for each in tensors[1:]:
            dtype = semantic.integer_promote_impl(dtype, each.dtype)
        held = self.module._get_np_dtype(dtype)
        for number in range(*(int(each.handle.data.item()) for each in tensors)):
            yield self.tl.tensor(self.module.TensorHandle(np.array([number], held), dtype), dtype)


def _lacks_to(constant: Any) -> Any:
    raise AttributeError("'int' object has no attribute 'to'")


def _on_host(arg: Any) -> bool:
    """Whether what an argument refers to can be read by its address."""
    if isinstance(arg, tuple) and not isinstance(arg, TypedScalar):
        return all(map(_on_host, arg))
    base = getattr(arg, "base", arg)
    return not hasattr(base, "data_ptr") or getattr(getattr(base, "device", None), "type", "") == "cpu"


def _loop_typing(transformer: Any) -> Any:
    class LoopTyping(transformer):  # type: ignore[misc]
        """Rewrites a kernel's loops beside what the original rewrites."""

        def visit_For(self, node: ast.For) -> ast.AST:
            self.generic_visit(node)
            call = node.iter
            if isinstance(call, ast.Call) and _is_range(call.func):
                call.func = ast.copy_location(ast.Name(id=LOOP, ctx=ast.Load()), call.func)
            return node

    return LoopTyping


def _is_range(function: ast.expr) -> bool:
    """``range``, ``tl.range``, ``triton.language.range``."""
    return (isinstance(function, ast.Name) and function.id == "range") or (
        isinstance(function, ast.Attribute) and function.attr == "range"
    )
