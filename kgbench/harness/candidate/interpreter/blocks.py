"""Types of blocks and dtypes of numpy, made once: the interpreter makes them anew for every value that a kernel has.
And numpy as it is, for the interpreter, whose calls are not counted.

Nothing is computed otherwise. In the kernels that ship this took a third of the interpreter's time.
"""

from __future__ import annotations

from typing import Any, Final

_MADE: Final = "kgbench_made"
"""Attribute of a block type: the shape and the number of elements, as a tensor of that type has them."""


class Numpy:
    """numpy's functions, also while those of its module are replaced by ones that count calls."""

    def __init__(self, module: Any) -> None:
        self.__module = module
        vars(self).update({name: getattr(value, "counts_for", value) for name, value in vars(module).items()})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__module, name)


class Blocks:
    """Replaces how types of blocks, tensors and numpy's dtypes are made."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.core = module.tl.core
        self.make_type = self.core.block_type.__init__
        self.make_tensor = self.core.tensor.__init__
        self.np_dtype = module._get_np_dtype
        self.types: dict[Any, dict[str, Any]] = {}
        """Attributes of a block type, by what its element's type is compared by, and its shape."""
        self.of_scalars = self.core.tuple([]), self.core.constexpr(1)
        self.np_dtypes: dict[str, Any] = {}

    def install(self) -> None:
        """Put the replacements into Triton's modules."""
        self.core.block_type.__init__ = lambda each, element_ty, shape: self._make_type(each, element_ty, shape)
        self.core.tensor.__init__ = lambda each, handle, type: self._make_tensor(each, handle, type)
        self.module._get_np_dtype = self._np_dtype
        # The interpreter's own calls are not counted, and finding that out took as long as many of them.
        self.module.np = Numpy(self.module.np)

    def _make_type(self, made: Any, element_ty: Any, shape: Any) -> None:
        try:
            kind = element_ty.name, getattr(element_ty, "address_space", "")
            key = *kind, *(each if type(each) is int else each.value for each in shape)
            known = self.types.get(key)
        except (AttributeError, TypeError):
            self.make_type(made, element_ty, shape)
            return
        if known is None:
            self.make_type(made, element_ty, shape)
            sizes = self.core.tuple([self.core.constexpr(size) for size in made.shape])
            known = self.types[key] = {**vars(made), _MADE: (sizes, self.core.constexpr(made.numel))}
        vars(made).update(known)

    def _make_tensor(self, made: Any, handle: Any, kind: Any) -> None:
        known = vars(kind).get(_MADE) or (None if kind.is_block() else self.of_scalars)
        if known is None:
            self.make_tensor(made, handle, kind)
            return
        made.handle, made.type, made.dtype = handle, kind, kind.scalar
        made.shape, made.numel = known

    def _np_dtype(self, kind: Any) -> Any:
        found = self.np_dtypes.get(kind.name)
        if found is None:
            found = self.np_dtypes[kind.name] = self.np_dtype(kind)
        return found
