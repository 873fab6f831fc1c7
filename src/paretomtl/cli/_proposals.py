"""Proposals of ``paretomtl diagnose``, which ``paretomtl run --proposal NAME`` takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.files.safe_open import exists
from paretomtl._support.text import suggest_name

if TYPE_CHECKING:
    from paretomtl.diagnosis import Proposal
    from paretomtl.problems import Problem

_FOLDER, _END = Path("runs"), "-proposal.json"


def proposal_path(name: str) -> Path:
    """The file of a proposal: a path with the suffix .json stands for itself."""
    return Path(name) if name.endswith(".json") else _FOLDER / f"{name}{_END}"


def without_proposals(paths: Sequence[Path]) -> list[Path]:
    """The paths without files of proposals, which a shell's ``runs/NAME-*`` finds beside runs; all, if none is left."""
    return [path for path in paths if not path.name.endswith(_END)] or list(paths)


def check_proposal_file(path: Path | None) -> None:
    """Refuse a file that could not be taken by its name later; None stands for the usual file."""
    if path is not None and path.suffix != ".json":
        raise ValueError(f"'--out' must end in .json. Got '{path}' instead.")


def take_proposal(name: str, method: str | None, preferences: str | None, set_: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``run`` that a proposal stands for.

    Args:
        name: the name of the proposal, or its file.
        method: what was given with --method; None if nothing was.
        preferences: what was given with --preferences.
        set_: what was given with --set.
    """
    given = {"--method": method, "--preferences": preferences, "--set scale": _scale_in(set_)}
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"'{option}' must not be given with '--proposal', which decides it. Got {value!r}.")
    proposal = _load(name)
    rows = proposal.preferences
    return {
        "method": proposal.method,
        "preferences": rows if isinstance(rows, int) else [list(row) for row in rows],
        "set_": [*set_, *_scale_setting(proposal)],
        "proposal": proposal,
    }


def check_same_problem(proposal: Proposal, problem: Problem) -> None:
    """Refuse the proposal of another problem: its directions are those of other losses."""
    own = (problem.name, tuple(problem.tasks))
    if (proposal.problem, proposal.tasks) != own:
        raise ValueError(
            f"'--proposal' must be of the problem {own[0]!r} with the tasks {list(own[1])}. Got one of "
            f"{proposal.problem!r} with {list(proposal.tasks)}: diagnose this problem first."
        )


def spelled_out(proposal: Proposal) -> list[str]:
    """The options of ``run`` that a proposal stands for, for a folder that cannot be written."""
    rows = proposal.preferences
    vectors = str(rows) if isinstance(rows, int) else ":".join(",".join(f"{part:g}" for part in row) for row in rows)
    setting = [word for text in _scale_setting(proposal) for word in ("--set", text)]
    return ["--method", proposal.method, "--preferences", vectors, *setting]


def _scale_setting(proposal: Proposal) -> list[str]:
    scale = proposal.scale
    if scale is None:
        return []
    return [f"scale={scale if isinstance(scale, str) else ','.join(f'{factor:g}' for factor in scale)}"]


def _load(name: str) -> Proposal:
    from paretomtl.diagnosis import Proposal

    path = proposal_path(name)
    if not exists(path):
        known = sorted(each.name.removesuffix(_END) for each in _FOLDER.glob(f"*{_END}"))
        more = suggest_name(name, known) or (f" Proposals here: {', '.join(known[:5])}." if known else "")
        raise FileNotFoundError(
            f"'--proposal' must be a name or file that paretomtl diagnose has stored. Got {name!r}: '{path}' does not "
            f"exist.{more}"
        )
    return Proposal.load(path)


def _scale_in(set_: Sequence[str]) -> str | None:
    return next((setting for setting in set_ if setting.partition("=")[0].strip() == "scale"), None)
