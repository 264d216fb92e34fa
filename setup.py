"""Where the packages are. All else about the distribution is in pyproject.toml.

``triggers`` and ``accumulations`` stand at the top and are packages of beamish. In the tree beamish holds links to them, for
what reads the tree itself, such as mypy; what is built or installed needs no link, since archives and some clones have none.
"""

from setuptools import find_packages, setup

AT_THE_TOP = ("triggers", "accumulations")

setup(
    packages=[
        *find_packages(include=["beamish", "beamish.*"], exclude=[f"beamish.{top}*" for top in AT_THE_TOP]),
        *(f"beamish.{name}" for top in AT_THE_TOP for name in find_packages(include=[top, f"{top}.*"])),
    ],
    package_dir={f"beamish.{top}": top for top in AT_THE_TOP},
)
