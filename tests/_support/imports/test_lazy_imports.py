"""Names that are imported when they are used: for type checkers, for `__all__` and at run time they are the same."""

import ast
import gc
import importlib
import pickle
from pathlib import Path

import pytest

import paretomtl as pm
from paretomtl._support.files.paths import PACKAGE
from paretomtl._support.imports.lazy_imports import LazyTable, lazy_names
from paretomtl.methods import METHODS, Method
from paretomtl.methods.registry import REGISTRY
from paretomtl.problems import PROBLEMS

FILES = [path for path in PACKAGE.rglob("__init__.py") if "lazy_names(" in path.read_text("utf-8")]


def _package(path: Path) -> str:
    return ".".join(("paretomtl", *path.relative_to(PACKAGE).parent.parts))


@pytest.mark.parametrize("path", FILES, ids=_package)
def test_lazy_names_are_those_that_type_checkers_see(path: Path) -> None:
    package, tree = _package(path), ast.parse(path.read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (node.module, alias.name) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and "lazy_names" in ast.dump(node.func))
    table = ast.literal_eval(call.args[1])
    submodules = next((ast.literal_eval(word.value) for word in call.keywords), ())
    lazy = {(module, name) for module, names in table.items() for name in names}
    assert lazy | {(package, name) for name in submodules} == typed
    module = importlib.import_module(package)
    assert {name for _, name in typed} == {name for name in module.__all__ if name != "__version__"}
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


def test_packages_that_are_lazy_are_found() -> None:
    assert {"paretomtl", "paretomtl.methods", "paretomtl.problems", "paretomtl.training"} <= set(map(_package, FILES))


def test_star_import_brings_all_names() -> None:
    names: dict[str, object] = {}
    exec("from paretomtl import *", names)
    assert set(pm.__all__) <= set(names)


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'paretomtl' has no attribute 'fitt'"):
        _ = pm.fitt  # type: ignore[attr-defined]
    assert not hasattr(pm, "__wrapped__")
    with pytest.raises(ImportError, match="cannot import name 'fitt'"):
        from paretomtl import fitt  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("enabled", [True, False])
def test_an_import_leaves_garbage_collection_as_it_was(enabled: bool) -> None:
    get, _ = lazy_names(__name__, {"fractions": ["Fraction"], "no.such.module": ["Name"]})
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        get("Fraction")
        with pytest.raises(ModuleNotFoundError):
            get("Name")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_lazy_names_are_pickled_by_reference() -> None:
    for thing in (pm.fit, pm.ParetoMTL, pm.Front, pm.problems.synthetic):
        assert pickle.loads(pickle.dumps(thing)) is thing


def test_tables_by_name_hold_what_they_name() -> None:
    assert all(issubclass(method, Method) and method.name == name for name, method in METHODS.items())
    assert all(callable(make) and make.__name__ == name.replace("-", "_") for name, make in PROBLEMS.items())


def test_titles_of_methods_are_the_first_sentences_of_their_docstrings() -> None:
    for name, method in METHODS.items():
        sentence = (method.__doc__ or "").strip().split("\n\n")[0]
        assert REGISTRY[name].title == " ".join(sentence.split())


def test_a_table_looks_up_and_lists() -> None:
    table = LazyTable[object]({"fraction": "fractions:Fraction", "none": "no.such.module:Name"})
    assert list(table) == ["fraction", "none"]
    assert len(table) == 2
    assert "none" in table  # without importing it
    assert "other" not in table
    with pytest.raises(KeyError):
        table["other"]
    with pytest.raises(ModuleNotFoundError):
        table["none"]
    assert "fractions:Fraction" in repr(table)
