"""Methods in words that tell one definition from another, for results that are stored."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap

from paretomtl.methods.base import Method, describe

_PACKAGE = __name__.partition(".")[0]


def describe_definition(method: Method) -> str:
    """A configured method; for one of the user's own, with a checksum of its classes.

    Comments, docstrings and layout do not count. Functions outside of the class are not seen.

    Example:
        >>> from paretomtl.methods import MGDA
        >>> describe_definition(MGDA(rescale=True))
        'MGDA(rescale=True)'
    """
    own = [kind for kind in type(method).__mro__ if issubclass(kind, Method) and not _is_built_in(kind)]
    sources = [source for kind in own if (source := _source(kind)) is not None]
    if not sources:
        return describe(method)
    return f"{describe(method)}, defined by {hashlib.sha256(' '.join(sources).encode()).hexdigest()[:12]}"


def _is_built_in(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _PACKAGE


def _source(kind: type) -> str | None:
    """The code of a class without comments and docstrings; None where no file has it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
