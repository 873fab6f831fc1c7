"""Help texts: options in panels, two examples for each command, and no types."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

OUTPUT = "Output"
"""The panel of what commands print: the last one."""


@dataclass(frozen=True)
class Help:
    """The help of a command.

    Attributes:
        summary: what it does, in one line of the list of commands.
        examples: each a command without ``paretomtl``, and what it does.
        panels: parameters by panel, as Python calls them; all others are in :data:`OUTPUT`.
    """

    summary: str
    examples: Sequence[tuple[str, str]]
    panels: Mapping[str, Sequence[str]]


_TRAINING = ("epochs", "batch_size", "optimizer", "learning_rate", "weight_decay")
_RUN_TRAINING = (*_TRAINING, "minutes", "seed", "keep", "patience", "start", "branch", "average", "clip_norm")
_SPEED = ("strategy", "device", "precision", "weigh_every", "workers", "accumulate", "compile")
_RAY = ("ray", "cpus", "shard_size")
_FOLDER = ("out", "resume", "checkpoint_seconds", "tensorboard")

HELP: Mapping[str, Help] = {
    "": Help(
        "Train a set of models, one per trade-off, spread over the Pareto front.",
        [
            ("diagnose multi-digits", "is a front worth it?"),
            ("run multi-digits", "train five models, one per trade-off"),
            ("select runs/multi-digits-auto-0", "choose one of them"),
        ],
        {},
    ),
    "diagnose": Help(
        "Is a front worth it? Find out in a short run.",
        [
            ("diagnose multi-digits", "a built-in problem"),
            ("diagnose model.py:problem --epochs 5 --seeds 4", "your own, for longer"),
        ],
        {
            "Problem": ("with_", "set_", "seeds", "split"),
            "Training": _TRAINING,
            "Speed and memory": _SPEED,
            "Folder": ("out", "plot", "dark"),
        },
    ),
    "run": Help(
        "Train a front: one model per trade-off.",
        [
            ("run multi-digits --preferences 9", "nine models, one per trade-off"),
            ("run model.py:problem --epochs 20 --out runs/mine", "your own problem"),
            ("run model.py:problem --minutes 10", "as much as fits into ten minutes"),
        ],
        {
            "Problem and models": ("with_", "method", "set_", "preferences", "proposal", "only"),
            "Training": _RUN_TRAINING,
            "Speed and memory": _SPEED,
            "Cluster": _RAY,
            "Folder": _FOLDER,
        },
    ),
    "compare": Help(
        "Train several methods alike, and say which does best.",
        [
            ("compare multi-digits --methods auto,linear --seeds 3", "two methods"),
            ("compare model.py:problem --out runs/all --fronts", "all, with their models"),
        ],
        {
            "Problem and methods": ("with_", "methods", "set_", "seeds", "preferences"),
            "Training": (*_TRAINING, "clip_norm", "keep"),
            "Speed and memory": _SPEED,
            "Cluster": _RAY,
            "Folder": ("out", "fronts_"),
        },
    ),
    "show": Help(
        "Show a front: its models, its numbers, how it was trained.",
        [
            ("show runs/multi-digits-auto-0", "all models in a table"),
            ("show runs/multi-digits-auto-0 --plot front.pdf", "a figure for a paper"),
        ],
        {},
    ),
    "select": Help(
        "Select a model, by questions or by rules, and say why.",
        [
            ("select runs/multi-digits-auto-0", "answer a few questions"),
            ("select runs/mine --at-least accuracy:left=0.8 --best right", "a limit"),
            ("select runs/mine --k 2 --export model-2", "keep the weights of model 2"),
        ],
        {
            "Choose by": ("direction", "importance", "knee", "max_regret", "best", "k", "split"),
            "Limits": ("at_least", "at_most", "bound"),
            "Export": ("save", "export_", "torchscript", "onnx", "problem", "with_", "trust"),
        },
    ),
    "report": Help(
        "Write an HTML page to explore, to select from and to share.",
        [
            ("report runs/multi-digits-auto-0", "writes report.html"),
            ("report runs/digits-* --out digits.html", "several runs on one page"),
        ],
        {},
    ),
    "watch": Help(
        "Show runs in a browser while they train.",
        [
            ("watch runs/multi-digits-auto-0 --open", "in a browser, while it trains"),
            ("watch runs/first runs/second --port 8080", "two runs on a fixed port"),
        ],
        {},
    ),
    "refine": Help(
        "Train more models: around one, or in the gaps of a front.",
        [
            ("refine runs/multi-digits-auto-0 --around 2", "more models like model 2"),
            ("refine runs/multi-digits-auto-0 --gaps 3", "three in the largest gaps"),
        ],
        {
            "New models": ("around", "gaps", "count", "angle", "propose"),
            "Training": ("epochs", "seed"),
            "Problem": ("problem", "with_", "trust"),
            "Folder": ("out", "resume"),
        },
    ),
    "doctor": Help(
        "Check the files of a run, and repair them.",
        [
            ("doctor runs/multi-digits-auto-0", "is every file whole?"),
            ("doctor runs/multi-digits-auto-0 --fix", "repair what can be repaired"),
        ],
        {},
    ),
    "reproduce": Help(
        "Run a study of the paper: claims, measurements, figures.",
        [
            ("reproduce synthetic --quick", "a study of the paper, in minutes"),
            ("reproduce synthetic --draw --out experiments/results", "figures again"),
        ],
        {
            "Study": ("quick", "smoke", "seeds", "only", "seconds", "again", "draw"),
            "Cluster": _RAY,
            "Folder": ("out", "data"),
        },
    ),
    "list": Help(
        "List methods, problems and studies by name.",
        [
            ("list", "names of methods, problems and studies"),
            ("list --json", "the same for a script"),
        ],
        {},
    ),
    "data": Help("Prepare data sets: read or download, verify, store.", [], {}),
    "prepare": Help(
        "Read or download a data set, verify it, and store it.",
        [
            ("data prepare multi-mnist", "download MNIST, make the canvases"),
            ("data prepare utkface --from faces", "from files that you have"),
        ],
        {
            "Files": ("source", "cache", "sheet", "no_sheet"),
            "Content": ("seed", "side", "size", "skip_broken"),
        },
    ),
}
"""The help of every command by its name; that of the whole program under the empty name."""


class HelpfulCommand(TyperCommand):
    """A command whose help has panels and examples, and no types."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        arrange(self.params, HELP[name or ""])

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """Place ``--help``, which is added late."""
        return arrange(super().get_params(ctx), HELP[self.name or ""])

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Print the help, and the examples where the eye rests: at the end."""
        super().format_help(ctx, formatter)
        print_examples(HELP[self.name or ""])


class HelpfulGroup(TyperGroup):
    """A group of commands whose help has examples, and no types."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        return arrange(super().get_params(ctx), _help_of(self))

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        super().format_help(ctx, formatter)
        print_examples(_help_of(self))


def _help_of(group: TyperGroup) -> Help:
    return HELP.get(group.name or "", HELP[""])


def arrange(params: list[Any], text: Help) -> list[Any]:
    """Put each option into its panel, and hide its type; names of values, such as NAME=VALUE, stay."""
    places = {name: panel for panel, names in text.panels.items() for name in names}
    for param in params:
        if param.param_type_name == "option":
            param.rich_help_panel = places.get(param.name, OUTPUT if text.panels else None)
        param.display_type_rich = lambda ctx, shown=param: None if _is_argument(shown) else shown.metavar
    last = [param for param in params if getattr(param, "rich_help_panel", None) == OUTPUT]
    order = {panel: number for number, panel in enumerate(text.panels)}
    first = [param for param in params if param not in last]
    return [*sorted(first, key=lambda param: order.get(getattr(param, "rich_help_panel", None) or "", -1)), *last]


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def print_examples(text: Help) -> None:
    """Print the examples in a panel; a comment that does not fit stands above its command."""
    if not text.examples:
        return
    from rich.console import Console
    from rich.panel import Panel

    from paretomtl.cli._next_steps import command_lines

    console = Console(file=sys.stdout, markup=False, highlight=False)
    lines = command_lines([(f"paretomtl {command}", what) for command, what in text.examples], console.width - 4)
    console.print(Panel("\n".join(lines), title="Examples", title_align="left", border_style="dim"))
