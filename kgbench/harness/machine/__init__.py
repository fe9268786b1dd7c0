"""The machine: settings, devices, their locks, processes, environments, languages.

May import: `core`, `problem`.
"""
