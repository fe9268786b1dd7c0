"""What every other package stands on: results, errors and their numbers, names, paths, files, figures.

May import: imports nothing of kgbench.
"""
