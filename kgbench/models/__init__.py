"""Where candidates come from: the providers that `--model` names, and the generation of replies.

May import: everything but `evaluation` and `cli`; of `harness` nothing.
"""
