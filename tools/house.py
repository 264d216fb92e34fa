"""Measures of the import graph: files, imports, cycles of files and of folders, and depth.

    python tools/house.py

An arrow is an import of a file by another, those under ``TYPE_CHECKING`` included. Imports inside functions are left out of circles of
files: they defer an import that would be circular.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent
PACKAGE = "beamish"
Arrows = Mapping[str, frozenset[str]]


@attrs.frozen
class House:
    """The files of the package, by the names of their modules.

    Attributes:
        files: the path of each.
    """

    files: Mapping[str, Path]

    @classmethod
    def read(cls, package: Path = ROOT / PACKAGE) -> House:
        """The import graph of the tree; links to folders are followed."""
        return cls({_name(path, package): path for path in sorted(_sources(package))})

    def arrows(self, *, lazy: bool = True) -> Arrows:
        """Per file the files that it imports; ``lazy``: inside functions too."""
        return {name: frozenset(self._imported(path, lazy=lazy)) - {name} for name, path in self.files.items()}

    def folder(self, name: str) -> str:
        """The folder of a file; a file at the top of the package stands for itself."""
        if self.files[name].name == "__init__.py":
            return name
        folder = name.rpartition(".")[0]
        return name if folder == PACKAGE else folder

    def folders(self) -> Arrows:
        """Per folder the folders whose files its own files import."""
        found: dict[str, set[str]] = {self.folder(name): set() for name in self.files}
        for name, others in self.arrows().items():
            found[self.folder(name)] |= {self.folder(other) for other in others} - {self.folder(name)}
        return {name: frozenset(others) for name, others in found.items()}

    def _imported(self, path: Path, *, lazy: bool) -> Iterator[str]:
        for node in _nodes(ast.parse(path.read_text("utf-8")), lazy=lazy):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.files)
            elif isinstance(node, ast.ImportFrom) and node.module and node.module in self.files:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    yield inner if inner in self.files else node.module


def circle(arrows: Arrows) -> list[str]:
    """A cycle of files, or folders; empty if there are no cycles."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def floors(arrows: Arrows) -> int:
    """The number of files, or folders, in the longest chain of imports."""
    height: dict[str, int] = {}
    for name in TopologicalSorter(arrows).static_order():
        height[name] = 1 + max((height[other] for other in arrows.get(name, ())), default=0)
    return max(height.values())


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _sources(path)
        elif path.suffix == ".py":
            yield path


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _nodes(tree: ast.AST, *, lazy: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield node
        if lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _nodes(node, lazy=lazy)


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def main() -> None:
    """Print the measures."""
    house = House.read()
    files, folders = house.arrows(), house.folders()
    print(f"{len(house.files)} files, {_lines(house.files.values()):,} lines, {len(folders)} folders")
    print(f"{sum(map(len, files.values())):,} arrows between files, {sum(map(len, folders.values()))} between folders")
    for what, arrows in (("files", house.arrows(lazy=False)), ("folders", folders)):
        found = circle(arrows)
        print(f"{what}: {'a circle: ' + ' -> '.join(found) if found else f'no circle, {floors(arrows)} floors'}")


if __name__ == "__main__":
    main()
