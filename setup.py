"""What pyproject.toml cannot say: ``problems/`` lies at the top of a checkout, and in ``kgbench/`` of a wheel."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[
        *find_namespace_packages(include=["kgbench*"], exclude=["*__pycache__*"]),
        *(f"kgbench.{name}" for name in find_namespace_packages(include=["problems*"])),
    ],
    package_dir={"kgbench.problems": "problems"},
)
