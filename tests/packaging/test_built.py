"""The packages for users: wheel and sdist, built from the tracked files and installed outside the repository.

`beamish/triggers` and `beamish/accumulations` are links in the tree. Zip archives of it and clones with `core.symlinks=false`
have small files of text in their place: what is built or installed from there must be the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest

pytestmark = pytest.mark.dear

USERS_PROGRAM = """
import pickle, sys
import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark

loaded = {name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "pandas", "triggers", "accumulations"}
assert not loaded, loaded
pipeline = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .trigger(AfterWatermark(early=AfterCount(2)))
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"), plays=Count())
)
script = TestStream().add([{"ts": 1, "team": "red", "score": n} for n in (1, 2)]).advance_watermark_to_infinity()
panes = pipeline.run(script)
assert [(pane.kind.value, pane.values["total"]) for pane in panes] == [
    ("PANE", 3), ("RETRACTION", 3), ("PANE", 3)
], panes
assert pickle.loads(pickle.dumps(pipeline)).run(script) == panes
print(bm.__file__)
"""


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a command that knows nothing of this repository; what it prints."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH", "PYTHONHOME")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build(call: str, source: Path, out: Path) -> Path:
    """Have setuptools build an archive: what pip and `python -m build` do, but with the setuptools that is installed."""
    program = f"import setuptools.build_meta as s; open({str(out / 'name')!r}, 'w').write(s.{call}({str(out)!r}))"
    run(sys.executable, "-c", program, cwd=source, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    return out / (out / "name").read_text()


@pytest.fixture(scope="module")
def tracked(root, tmp_path_factory):
    """A copy of the tracked files, links as links; in an unpacked sdist of what it says it holds."""
    if (root / ".git").exists():
        names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout.decode()
    else:
        names = (root / "beamish.egg-info" / "SOURCES.txt").read_text().replace("\n", "\0")
    copy = tmp_path_factory.mktemp("repository")
    for name in filter(None, names.split("\0")):
        if (root / name).is_symlink() or (root / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)
    return copy


@pytest.fixture(scope="module")
def linkless(tracked, tmp_path_factory):
    """The same without links: where one was, a file that holds where it went."""
    copy = tmp_path_factory.mktemp("linkless") / "repository"
    shutil.copytree(tracked, copy, symlinks=True)
    for path in [path for path in copy.rglob("*") if path.is_symlink()]:
        target = str(path.readlink())
        path.unlink()
        path.write_text(target)
    assert (copy / "beamish" / "triggers").is_file()
    return copy


@pytest.fixture(scope="module")
def sdist(linkless, tmp_path_factory):
    newest = tuple(int(part) for part in version("setuptools").split(".")[:1])
    assert newest >= (77,), (
        f"setuptools {version('setuptools')}: pyproject.toml asks for 77 to build; make test installs it"
    )
    return build("build_sdist", linkless, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tracked, tmp_path_factory):
    """The wheel of the tree with its links."""
    return build("build_wheel", tracked, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_of_sdist(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4 and later
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)
    (source,) = folder.iterdir()
    return build("build_wheel", source, tmp_path_factory.mktemp("wheel_of_sdist"))


def content(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def files_of(package: Path) -> set[str]:
    return {path.name for path in package.glob("*.py")}


def test_the_sdist_holds_all_that_its_tests_need(tracked, sdist):
    with tarfile.open(sdist) as archive:
        held = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}
    files = {path.relative_to(tracked) for path in tracked.rglob("*") if path.is_file() and not path.is_symlink()}
    needed = {path.as_posix() for path in files if path.parts[0] != "build" and not path.parts[0].startswith(".")}
    assert needed <= held, sorted(needed - held)


def test_the_sdist_has_no_links(root, sdist):
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert all(one.isfile() or one.isdir() for one in members), [one for one in members if one.issym() or one.islnk()]
    for linked in ("triggers", "accumulations"):
        direct = {PurePosixPath(one.name).name for one in members if PurePosixPath(one.name).parent.name == linked}
        assert files_of(root / linked) <= direct


@pytest.mark.parametrize("linked", ["triggers", "accumulations"])
def test_linked_packages_are_files_in_the_wheel(tracked, wheel, linked):
    found = content(wheel)
    for path in (tracked / linked).rglob("*.py"):
        name = f"beamish/{path.relative_to(tracked)}"
        assert found.get(name) == path.read_bytes(), name


def test_the_wheel_holds_every_module_and_the_mark_of_types(tracked, wheel):
    found = set(content(wheel))
    modules = {path.relative_to(tracked).as_posix() for path in (tracked / "beamish").rglob("*.py")}
    assert modules <= found, sorted(modules - found)
    parts = {
        f"beamish/{part}" for part in ("plot/player.css", "plot/player.js", "dashboard/page.css", "dashboard/page.js")
    }
    assert {"beamish/py.typed", *parts} <= found


def test_nothing_but_beamish_is_in_the_wheel(wheel):
    tops = {name.partition("/")[0] for name in content(wheel)}
    assert tops == {"beamish", f"beamish-{version('beamish')}.dist-info"}


def test_the_wheel_of_the_sdist_made_without_links_is_the_wheel_of_the_tree(wheel, wheel_of_sdist):
    of_tree, of_sdist = content(wheel), content(wheel_of_sdist)
    assert of_tree.keys() == of_sdist.keys()
    assert [name for name in of_tree if of_tree[name] != of_sdist[name]] == []


def installed(wheel: Path, folder: Path) -> Path:
    """A fresh environment with a wheel, which sees numpy, Arrow, attrs and mypy of this one, but no editable beamish."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    pip = ["-m", "pip", "--disable-pip-version-check", "--python", python]
    run(sys.executable, *pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth file is searched last, and the .pth files there are not read: an editable install is one.
    (site / "others.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    return python


def test_an_editable_install_of_a_tree_without_links_runs(linkless, sdist, tmp_path_factory):
    editable = build("build_editable", linkless, tmp_path_factory.mktemp("editable"))
    python = installed(editable, tmp_path_factory.mktemp("environment") / "venv")
    for place in (tmp_path_factory.mktemp("elsewhere"), linkless):
        assert Path(run(python, "-c", USERS_PROGRAM, cwd=place).strip()).is_relative_to(linkless)
    assert " passed" in run(
        python,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "tests/pipeline/test_durations.py",
        "tests/own",
        "tests/triggers",
        cwd=linkless,
        HYPOTHESIS_PROFILE="few",
    )


@pytest.fixture(scope="module", params=["wheel", "wheel_of_sdist"])
def python(request, tmp_path_factory):
    """The Python of an environment in which beamish is installed, of the tree's wheel and of the sdist's."""
    return installed(request.getfixturevalue(request.param), tmp_path_factory.mktemp("environment") / "venv")


def test_the_installed_package_runs_without_loading_spark(python, tmp_path):
    place = run(python, "-c", USERS_PROGRAM, cwd=tmp_path).strip()
    assert Path(place).is_relative_to(python.parents[1]), place


@pytest.mark.deep
def test_a_type_checker_reads_the_installed_package(root, wheel, tmp_path):
    """Checked on the wheel from the tree, since that from the sdist has the same files. That it has each module and the mark of types is tested above."""
    python = installed(wheel, tmp_path / "venv")
    shutil.copy(root / "tests" / "typing_examples.py", tmp_path / "users_file.py")
    cache = root / ".mypy_cache" / "installed"
    run(python, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", "users_file.py", cwd=tmp_path)
