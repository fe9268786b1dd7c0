"""The problem file's format: which keys there are, what each takes, and how they become a ``Problem``.

``keys`` is the table of keys as pydantic models, from which the JSON Schema is made; ``leaves`` reads single values,
``signature`` the entry, ``arguments`` and ``overload`` put the parts together, ``fragments`` are shared texts.
"""
