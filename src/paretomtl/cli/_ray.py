"""Options for training on Ray."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretomtl._support.imports.import_path import is_file, split_name
from paretomtl.cli._resume_command import RepeatableCommand

if TYPE_CHECKING:
    from paretomtl.training import RayExecutor

_HERE = "here"
_ADDRESS = re.compile(r"auto|(ray://)?[^\s:]+:\d+")

OnRay = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Train on Ray: on this machine, on the cluster at HOST:PORT, or on the one this machine is in (auto).",
        show_default=False,
    ),
]
Cpus = Annotated[int, typer.Option(help="CPUs per shard (with --ray).")]
ShardSize = Annotated[int | None, typer.Option(help="Models per shard (with --ray); default: measured.")]


class RayCommand(RepeatableCommand):
    """A command whose ``--ray`` takes an optional address."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        return super().parse_args(ctx, with_place(args))


def with_place(arguments: list[str]) -> list[str]:
    """Return the arguments with ``--ray=here`` in place of a ``--ray`` without an address."""
    followed = [*arguments[1:], ""] if arguments else []
    return [
        f"--ray={_HERE}" if word == "--ray" and not _ADDRESS.fullmatch(after) else word
        for word, after in zip(arguments, followed, strict=True)
    ]


def check_methods_for(ray: str | None, methods: Iterable[str]) -> None:
    """Refuse methods that workers could not import: a method is sent to them as the name of its class."""
    files = [parts[0] for name in methods if (parts := split_name(name)) is not None and is_file(parts[0])]
    wrong = [file for file in files if not Path(file).stem.isidentifier()]
    if ray is not None and wrong:
        raise ValueError(
            f"'--ray' must come with methods in files with valid module names, such as my_methods.py. "
            f"Got '{wrong[0]}': rename it."
        )


def ray_executor(
    ray: str | None,
    cpus: int = 1,
    shard_size: int | None = None,
    problem: str | None = None,
    settings: Sequence[str] = (),
) -> RayExecutor | None:
    """Return the executor for these options, with a reference to the user's own problem; None without ``--ray``."""
    if ray is None:
        if cpus != 1 or shard_size is not None:
            raise ValueError("'--cpus' and '--shard-size' must come with --ray. Got none.")
        return None
    if ray != _HERE and not _ADDRESS.fullmatch(ray):
        raise ValueError(f"'--ray' must be HOST:PORT, ray://HOST:PORT or auto, or stand alone. Got {ray!r} instead.")
    from paretomtl.cli._lookup import named_problem
    from paretomtl.training import RayExecutor

    named = None if problem is None else named_problem(problem, settings)
    return RayExecutor(None if ray == _HERE else ray, cpus=cpus, shard_size=shard_size, problem=named)
