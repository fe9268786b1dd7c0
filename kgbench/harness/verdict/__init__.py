"""Is a candidate correct: inputs, output specs, references, comparison.

May import: `core`, `problem`, `baselines`, `harness.wire`, `harness.machine`, `harness.workers`.
"""
