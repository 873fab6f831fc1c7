"""The description of a method as text, which identifies stored states, runs and rows."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import re
import textwrap

_PACKAGE = __name__.partition(".")[0]
EARLIER = "paretomtl.earlier"
"""In the metadata of a field: the value that the option had before it was one, in descriptions that are stored."""


def describe(method: object) -> str:
    """Describe a configured method by the options that are on; a new option that is off changes nothing.

    An option is off if it is None or False, or has the value in its field's metadata under :data:`EARLIER`: rows that
    were stored before this option existed are recognised as rows of that value, whatever the default is now.

    Example:
        >>> from paretomtl.methods import ParetoMTL
        >>> describe(ParetoMTL(initial_steps=0, return_share=None))
        'ParetoMTL(initial_steps=0, epsilon=0.1, release_steps=0)'
        >>> from paretomtl.methods import Linear
        >>> describe(Linear()), describe(Linear(layout="corners"))
        ("Linear(layout='interior')", 'Linear()')
    """
    if not dataclasses.is_dataclass(method):
        return without_addresses(repr(method))
    options = []
    for field in dataclasses.fields(method):
        value = getattr(method, field.name)
        value = value.item() if getattr(value, "ndim", None) == 0 else value  # NumPy's have another text than Python's
        earlier = EARLIER in field.metadata and value == field.metadata[EARLIER]
        if value is not None and value is not False and not earlier:
            options.append(f"{field.name}={value!r}")
    return without_addresses(f"{type(method).__name__}({', '.join(options)})")


def without_addresses(text: str) -> str:
    """Remove memory addresses, which many objects show, so that the text is the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def describe_definition(method: object) -> str:
    """Describe a configured method; a user's own one with a checksum of its classes.

    Comments, docstrings and layout do not count. Functions outside the class are not included.

    Example:
        >>> from paretomtl.methods import MGDA
        >>> describe_definition(MGDA(rescale=True))
        'MGDA(rescale=True)'
    """
    kinds = type(method).__mro__
    base = [kind for kind in kinds if _is_built_in(kind)][-1]  # Method, which imports this module
    own = [kind for kind in kinds if issubclass(kind, base) and not _is_built_in(kind)]
    sources = [source for kind in own if (source := _source(kind)) is not None]
    if not sources:
        return describe(method)
    return f"{describe(method)}, defined by {hashlib.sha256(' '.join(sources).encode()).hexdigest()[:12]}"


def _is_built_in(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _PACKAGE


def _source(kind: type) -> str | None:
    """The code of a class without comments and docstrings; None if no file has it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
