# problem: aten/add
# outcome: runtime error
# device: any
"""Imports what is not installed."""

import a_module_that_nobody_has
