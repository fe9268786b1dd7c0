# problem: aten/add
# outcome: compile error
# device: any
"""Has the entry's name for something that cannot be called."""

add_Tensor = add_Scalar = 42
