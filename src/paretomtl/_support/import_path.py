"""Import paths: objects of users by name, ``package.module:attribute`` or ``FILE.py:attribute``."""

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

from paretomtl._support.paths import is_in_package

FORMS = "package.module:attribute or FILE.py:attribute"


def split_name(name: str) -> tuple[str, str] | None:
    """The module or file of a name, and the attribute; None for text that is no such name."""
    place, _, attribute = name.rpartition(":")
    fits = is_file(place) if place.endswith(".py") else all(part.isidentifier() for part in place.split("."))
    return (place, attribute) if fits and attribute.isidentifier() else None


def is_file(place: str) -> bool:
    """Whether the first part of a name is that of a file, rather than of a module."""
    return place.endswith(".py") and len(place) > len(".py") and place.isprintable()


def absolute_name(name: str) -> str:
    """The name of an object in a file, for use from other folders; other names as they are.

    Example:
        >>> absolute_name("toys:problem")
        'toys:problem'
    """
    parts = split_name(name)
    if parts is None or not is_file(parts[0]):
        return name
    return f"{Path(parts[0]).expanduser().resolve()}:{parts[1]}"


def short_name(name: str) -> str:
    """A name for folders and tables: the attribute, with its file or module unless that says as much.

    Example:
        >>> short_name("examples/own_model.py:problem"), short_name("shop.problems:ranking")
        ('own_model', 'ranking')
    """
    place, _, attribute = name.rpartition(":")
    stem = Path(place).stem if is_file(place) else place.rpartition(".")[2]
    return stem if attribute in ("problem", "make", "make_problem", "method") else attribute


def find_object(what: str, name: str, kind: type) -> Any:
    """The object that a name stands for. Its module is imported: it runs as code.

    A module is looked for in the current folder, too. A file may import its neighbours.

    Args:
        what: what error messages call the name.
        name: ``package.module:attribute`` or ``FILE.py:attribute``.
        kind: what is looked for, for messages that list what the module has.
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
            f"'{what}' must name an attribute of '{place}'. Got {attribute!r}, which it has not."
            f"{_known_in(module, kind)}"
        )
    return getattr(module, attribute)


def check_own(what: str, name: str, found: Callable[..., Any], kind: str) -> None:
    """Refuse to call what Python itself brings, such as ``os:system``: it makes no problem, whatever else it does."""
    function: Any = found
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
    """Whether a file is of Python itself or installed, rather than a user's own."""
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
    """The module of a file, which is executed once in a process, whatever its name."""
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
    importlib.invalidate_caches()  # of files that were written a moment ago


def _known_in(module: ModuleType, kind: type) -> str:
    """A sentence on what may have been meant in a module: objects and classes of this kind, and its functions."""
    values = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    own = {name: value for name, value in values.items() if getattr(value, "__module__", None) == module.__name__}
    ready = [name for name, value in values.items() if isinstance(value, kind)]
    ready += [name for name, value in own.items() if inspect.isclass(value) and issubclass(value, kind)]
    functions = [name for name, value in own.items() if inspect.isfunction(value)]
    said = f" It has the {kind.__name__}s {', '.join(sorted(ready))}" if ready else f" It has no {kind.__name__}"
    more = f", and the functions {', '.join(sorted(functions))}" if functions else ""
    return f"{said}{more}."


def _last_frame_outside(error: BaseException) -> traceback.FrameSummary | None:
    """Where in the user's code an error came from; None where no such code was reached."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not is_in_package(frame.filename) and not is_of_library(frame.filename)]
    return others[-1] if others else None


def _is_of_python(module: str, file: str | None) -> bool:
    """Whether a module is of the standard library, rather than a file of the same name elsewhere."""
    if file is None:
        return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
    path, paths = Path(file).resolve(), sysconfig.get_paths()
    library = any(path.is_relative_to(Path(paths[key]).resolve()) for key in ("stdlib", "platstdlib"))
    return library and not any(path.is_relative_to(Path(paths[key]).resolve()) for key in ("purelib", "platlib"))
