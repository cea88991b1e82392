"""What a tool holds: layers, exports, and the size of files."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("hiermem_core", "langchain_hiermem", "llamaindex_hiermem")


def sources():
    folders = [ROOT / "shared" / "hiermem_core", ROOT / "langchain_hiermem"]
    return [
        path for folder in [*folders, ROOT / "llamaindex_hiermem"] for path in folder.rglob("*.py")
    ]


def test_imports_run_downwards_only():
    command = [Path(sys.executable).parent / "lint-imports", ROOT / "pyproject.toml"]

    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_exist(package):
    module = importlib.import_module(package)

    assert len(set(module.__all__)) == len(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_public_names_and_no_others(package):
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}.")
        for alias in node.names
    }

    assert imported == set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_that_they_are_typed(package):
    module = importlib.import_module(package)

    assert (Path(module.__file__).parent / "py.typed").is_file()


def test_no_file_grows_past_four_hundred_lines():
    long = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}

    assert {name: lines for name, lines in long.items() if lines > 400} == {}


def test_every_module_says_what_it_is():
    silent = [
        path for path in sources() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]

    assert silent == []
