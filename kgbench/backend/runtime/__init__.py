"""The modules of a package that `kgbench export` writes, copied as they are. `public.py` becomes its `__init__.py`.

May import: torch, and each other relatively. Nothing of kgbench, since the package is used without it.
"""
