"""Draw the path of one minibatch, as docs/project/design.md shows it.

python docs/minibatch.py     # writes docs/minibatch.svg
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

ABOVE = [
    ("training/run/loop.py", "for each epoch, for each batch"),
    ("training/run/training_run.py", "counts steps, stores checkpoints, reports epochs"),
    ("training/run/execution.py", "holds the groups of models; leaves a stack that fails"),
    ("engine/runners/", "launches the step, in threads or on streams; or replays it"),
    ("engine/step.py", "train_step: measure, weigh, update"),
]
PARTS = [
    (
        "measure",
        "losses L, gradients J, Gramian C",
        [
            ("engine/measure.py", "a batch, or micro-batches"),
            ("engine/models/", "forward pass of one or a stack"),
            ("problems/", "model and losses: L [K, m]"),
            ("engine/gradients.py", "m backward passes: J, C = JJᵀ"),
        ],
    ),
    (
        "weigh",
        "task weights, and the method's state",
        [
            ("methods/base.py", "made safe, in float64"),
            ("methods/", "weigh(L, C, state): α [K, m]"),
            ("core/", "regions, min-norm point"),
            ("engine/coupling.py", "coupled: all rows of a front"),
        ],
    ),
    (
        "update",
        "one step of the optimizer",
        [
            ("engine/gradients.py", "weighted sum of J"),
            ("engine/model_group.py", "broken models stay behind"),
            ("torch.optim", "the step"),
        ],
    ),
]
BELOW = [("engine/history.py", "adds losses and weights to the means of the epoch")]

WIDTH, LEFT, ROW, BOX = 860, 20, 38, 30
COLUMN, GAP = 266, 11
NAME = 250  # width of a box with a path
SANS = 'font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif"'
MONO = 'font-family="ui-monospace, Menlo, Consolas, monospace"'


def box(x: float, y: float, width: float, name: str) -> list[str]:
    """A box with a file or folder in it."""
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="6" fill="#dbe9f9" stroke="#0b5fa5"/>',
        f'<text x="{x + width / 2}" y="{y + 20}" text-anchor="middle" fill="#0a3461" {MONO} font-size="13" '
        f'font-weight="600">{escape(name)}</text>',
    ]


def words(x: float, y: float, text: str, *, size: int = 14, weight: int = 400) -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" fill="#24292f" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'


def draw() -> str:
    """The picture, as SVG; it brings its own light background, so that it is legible on a dark page, too."""
    lines: list[str] = []
    y = 20
    for depth, (name, text) in enumerate(ABOVE):
        x = LEFT + 22 * depth
        if depth:
            lines.append(f'<path d="M{x - 11} {y - ROW + BOX} V{y + BOX / 2} H{x}" stroke="#57606a" fill="none"/>')
        lines += [*box(x, y, NAME, name), words(x + NAME + 14, y + 20, text)]
        y += ROW
    y += 14
    height = 62 + max(len(steps) for _, _, steps in PARTS) * 52
    for column, (title, summary, steps) in enumerate(PARTS):
        x = LEFT + column * (COLUMN + GAP)
        lines.append(
            f'<rect x="{x}" y="{y}" width="{COLUMN}" height="{height}" rx="8" fill="#ffffff" stroke="#57606a"/>'
        )
        if column:
            middle = y + 22
            lines.append(f'<path d="M{x - GAP} {middle - 5} L{x} {middle} L{x - GAP} {middle + 5} Z" fill="#57606a"/>')
        lines += [words(x + 14, y + 26, title, size=16, weight=700), words(x + 14, y + 46, summary, size=13)]
        for place, (name, text) in enumerate(steps):
            top = y + 58 + 52 * place
            lines += [*box(x + 14, top, COLUMN - 28, name), words(x + 18, top + BOX + 15, text, size=12)]
    y += height + 14
    for name, text in BELOW:
        lines += [*box(LEFT, y, NAME, name), words(LEFT + NAME + 14, y + 20, text)]
        y += ROW
    total = y + 8
    size = f'viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title" {SANS}>',
        '<title id="title">The path of one minibatch: the loop, the runners, and the step with measure, weigh and '
        "update.</title>",
        f'<rect width="{WIDTH}" height="{total}" rx="10" fill="#f6f8fa" stroke="#d0d7de"/>',
    ]
    return "\n  ".join([*head, *lines]) + "\n</svg>\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")
