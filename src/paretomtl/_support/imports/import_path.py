"""Import paths of users' objects: ``package.module:attribute`` or ``FILE.py:attribute``."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from paretomtl._support.files.paths import is_in_package

FORMS = "package.module:attribute or FILE.py:attribute"


def split_name(name: str) -> tuple[str, str] | None:
    """Split a name into its module or file and the attribute; None for other text."""
    place, _, attribute = name.rpartition(":")
    fits = is_file(place) if place.endswith(".py") else all(part.isidentifier() for part in place.split("."))
    return (place, attribute) if fits and attribute.isidentifier() else None


def is_file(place: str) -> bool:
    """Whether the first part of a name is a file rather than a module."""
    return place.endswith(".py") and len(place) > len(".py") and place.isprintable()


def absolute_name(name: str) -> str:
    """Make the file in a name absolute, for use from other folders; return other names unchanged.

    Example:
        >>> absolute_name("toys:problem")
        'toys:problem'
    """
    parts = split_name(name)
    if parts is None or not is_file(parts[0]):
        return name
    return f"{Path(parts[0]).expanduser().resolve()}:{parts[1]}"


def relative_name(name: str) -> str:
    """Write the file in a name as seen from the current folder, if it lies there; return other names unchanged.

    Example:
        >>> relative_name(absolute_name("toys/digits.py:problem")), relative_name("toys:problem")
        ('toys/digits.py:problem', 'toys:problem')
    """
    parts = split_name(name)
    if parts is None or not is_file(parts[0]):
        return name
    path, here = Path(parts[0]), Path.cwd().resolve()
    return f"{path.relative_to(here)}:{parts[1]}" if path.is_relative_to(here) else name


def short_name(name: str) -> str:
    """A name for folders and tables: the attribute, or its file or module if the attribute is generic.

    Example:
        >>> short_name("examples/own_model.py:problem"), short_name("shop.problems:ranking")
        ('own_model', 'ranking')
    """
    place, _, attribute = name.rpartition(":")
    stem = Path(place).stem if is_file(place) else place.rpartition(".")[2]
    return stem if attribute in ("problem", "make", "make_problem", "method") else attribute


def find_object(what: str, name: str, kind: type) -> Any:
    """Import the object that a name stands for. Its module runs as code.

    The current folder is searched for modules too. A file may import its neighbours.

    Args:
        what: the name of the argument in error messages.
        name: ``package.module:attribute`` or ``FILE.py:attribute``.
        kind: the expected type, for messages that list candidates in the module.
    """
    parts = split_name(name)
    if parts is None:
        raise ValueError(f"'{what}' must be {FORMS}. Got {name!r} instead.")
    place, attribute = parts
    try:
        module = _load_file(what, Path(place)) if is_file(place) else _import_module(what, place)
    except (TypeError, ValueError, OSError) as error:
        frame = _last_frame_outside(error)
        if frame is not None:
            error.add_note(f"This came from importing '{place}'. See {frame.filename}, line {frame.lineno}.")
        raise
    if not hasattr(module, attribute):
        raise ValueError(
            f"'{what}' must name an attribute of '{place}'. Got {attribute!r}, which does not exist."
            f"{_known_in(module, kind)}"
        )
    return getattr(module, attribute)


def check_own(what: str, name: str, factory: Callable[..., Any], kind: str) -> None:
    """Refuse to call the standard library, such as ``os:system``: it makes no problem, whatever else it does."""
    function: Any = factory
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = type(function)
    module = inspect.getmodule(function)
    if (
        inspect.isbuiltin(function)
        or module is None
        or _is_of_python(module.__name__, getattr(module, "__file__", None))
    ):
        raise TypeError(f"'{what}' must be a {kind} or a function that makes one. '{name}' is a part of Python itself.")


def is_of_library(file: str) -> bool:
    """Whether a file belongs to Python itself or an installed package, rather than to the user."""
    folders = [Path(sysconfig.get_paths()[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return file.startswith("<") or any(Path(file).resolve().is_relative_to(folder) for folder in folders)


def _import_module(what: str, name: str) -> ModuleType:
    _look_first_in(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        file = Path(*name.split(".")).with_suffix(".py")
        raise ValueError(
            f"'{what}' must name a module that can be imported. Got {name!r}: {error}. It must be installed, on "
            f"PYTHONPATH, or in the current folder, wherever it is used. A file is named by its path, such as "
            f"./{file}:attribute."
        ) from None


def _load_file(what: str, path: Path) -> ModuleType:
    """Load a file as a module; it is executed once in a process, under any name."""
    path = path.expanduser()
    if not path.is_file():
        place = "" if path.is_absolute() else f" in '{Path.cwd()}'"
        raise ValueError(f"'{what}' must name a file that exists. Got '{path}', which is not there{place}.")
    path = path.resolve()
    loaded = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == str(path)]
    if loaded:
        return loaded[0]
    folder, name = _importable(path)
    _look_first_in(folder)
    if name not in sys.modules and all(part.isidentifier() for part in name.split(".")):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin == str(path):
            return importlib.import_module(name)  # as its neighbours, and workers, would import it
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # another module has its own name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _importable(path: Path) -> tuple[Path, str]:
    """The folder from which a file can be imported, above the packages that it is in, and its name from there."""
    folder, name = path.parent, path.stem
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder, name = folder.parent, f"{folder.name}.{name}"
    return folder, name


def _look_first_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # for files that were just written


def _known_in(module: ModuleType, kind: type) -> str:
    """A sentence that lists candidates in a module: objects and classes of this type, and functions."""
    values = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    own = {name: value for name, value in values.items() if getattr(value, "__module__", None) == module.__name__}
    ready = [name for name, value in values.items() if isinstance(value, kind)]
    ready += [name for name, value in own.items() if inspect.isclass(value) and issubclass(value, kind)]
    functions = [name for name, value in own.items() if inspect.isfunction(value)]
    candidates = f" It has the {kind.__name__}s {', '.join(sorted(ready))}" if ready else f" It has no {kind.__name__}"
    more = f", and the functions {', '.join(sorted(functions))}" if functions else ""
    return f"{candidates}{more}."


def _last_frame_outside(error: BaseException) -> traceback.FrameSummary | None:
    """The frame of the user's code that an error came from; None if no such code was reached."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not is_in_package(frame.filename) and not is_of_library(frame.filename)]
    return others[-1] if others else None


def _is_of_python(module: str, file: str | None) -> bool:
    """Whether a module belongs to the standard library, rather than to a file of the same name elsewhere."""
    if file is None:
        return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
    path, paths = Path(file).resolve(), sysconfig.get_paths()
    library = any(path.is_relative_to(Path(paths[key]).resolve()) for key in ("stdlib", "platstdlib"))
    return library and not any(path.is_relative_to(Path(paths[key]).resolve()) for key in ("purelib", "platlib"))
