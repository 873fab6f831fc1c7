"""Stored results as Markdown tables."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from paretomtl.compare import load_rows
from paretomtl.problems._census.files import PUBLISHED_CENSUS
from paretomtl.problems._census.layout import CENSUS
from paretomtl.problems._multi_mnist.files import PUBLISHED
from paretomtl.problems._multi_mnist.idx import SOURCES

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import plan

ROOT = Path(__file__).parents[1]


def benchmark_tables() -> str:
    """The cost and the accuracy of the dual, compared with peers."""
    parts = []
    for device in ("cpu", "cuda"):
        path = ROOT / "benchmarks" / "results" / f"min_norm-{device}.json"
        rows = load_rows(path)
        speed = [row for row in rows if row["what"] == "speed"]
        parts += [
            f"### Speed on {'a CPU' if device == 'cpu' else 'a GPU'}",
            "",
            table(
                ["what", "milliseconds, median", "quartiles", "paretomtl over this"],
                [[r["solver"], r["milliseconds"], r["quartiles"], r["paretomtl_over_this"]] for r in speed],
            ),
            "",
            f"One solve makes {_operations(speed[0])}. {provenance(path, speed[0])}",
            "",
        ]
    stored = load_rows(ROOT / "benchmarks" / "results" / "min_norm-cpu.json")
    rows = [row for row in stored if row["what"] == "accuracy"]
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    lines = []
    for tasks in sorted({row["tasks"] for row in rows}):
        by = {row["solver"]: row for row in rows if row["tasks"] == tasks}
        lines.append([tasks, *[f"{by[s]['worst_gap_easy']:.0e} / {by[s]['worst_gap_hard']:.0e}" for s in solvers]])
    parts += ["### Accuracy: worst gap, easy / hard", "", table(["tasks", *solvers], lines)]
    return "\n".join(parts)


def step_tables() -> str:
    """The cost of a training step."""
    path = ROOT / "benchmarks" / "results" / "step-cpu.json"
    rows = load_rows(path)
    one = [row for row in rows if row["what"] == "one model"]
    parts = [
        table(
            ["one step of one model, two tasks", "milliseconds, median", "quartiles", "a Pareto MTL step over this"],
            [[r["step"], r["milliseconds"], r["quartiles"], r["first_over_this"]] for r in one],
        ),
        "",
        table(
            ["tasks", "Pareto MTL step, ms", "over a weighted sum", "over the bare autograd calls"],
            [
                [
                    tasks,
                    by["Pareto MTL, fit"]["milliseconds"],
                    *[by[name]["first_over_this"] for name in ("weighted sum", "bare autograd calls")],
                ]
                for tasks, by in _grouped(rows, "tasks", "tasks")
            ],
        ),
        "",
    ]
    names = [f"{method}, {way}" for method in ("Pareto MTL", "linear") for way in ("one after another", "as a stack")]
    lines = [
        [models, *[by[name]["milliseconds"] for name in names]] for models, by in _grouped(rows, "models", "models")
    ]
    parts += [table(["models", *[f"{name}, ms" for name in names]], lines), "", provenance(path, rows[0])]
    return "\n".join(parts)


def _grouped(rows: Sequence[dict[str, Any]], part: str, key: str) -> list[tuple[int, dict[str, dict[str, Any]]]]:
    """The rows of a part by the value of a field, and then by the kind of step."""
    mine = [row for row in rows if row["what"] == part]
    return [
        (value, {row["step"]: row for row in mine if row[key] == value}) for value in sorted({r[key] for r in mine})
    ]


def memory_table() -> str:
    """Peak memory against tasks and models."""
    path = ROOT / "benchmarks" / "results" / "memory-cuda.json"
    rows = load_rows(path)
    sizes = list(dict.fromkeys((row["tasks"], row["models"]) for row in rows))
    kinds = [("pareto-mtl", "all"), ("pareto-mtl", "shared"), ("pareto-mtl", "representation"), ("linear", "all")]
    lines = []
    for tasks, models in sizes:
        line: list[object] = [tasks, models]
        for method, scope in kinds:
            wanted = {"method": method, "scope": scope, "tasks": tasks, "models": models}
            mine = {r["strategy"]: r for r in rows if all(r[name] == value for name, value in wanted.items())}
            line.append(" / ".join(str(mine[s]["peak_over_all_models"]) for s in ("sequential", "batched")))
        lines.append(line)
    header = ["tasks", "models", *[f"{method}, {scope}" if method != "linear" else method for method, scope in kinds]]
    return "\n".join([table(header, lines), "", provenance(path, rows[0])])


def page_table() -> str:
    """The size of the page, the time to open it, and the time of a slider's step."""
    path = ROOT / "benchmarks" / "results" / "page.json"
    rows = load_rows(path)
    kinds = {what: [row for row in rows if row["what"] == what] for what in dict.fromkeys(r["what"] for r in rows)}
    pages = [*kinds["open the page"], *kinds["a hostile page"]]
    stages = ["first words", "open", "least to most", "everything", "on the processor"]
    opened = [
        [
            _page_label(row),
            round(row["bytes"] / 1e6, 2),
            row["first_words_milliseconds"],
            f"**{row['milliseconds']}**",
            f"{row['milliseconds_least']} to {row['milliseconds_most']}",
            row["everything_milliseconds"],
            row["cpu_milliseconds"],
            row["load"],
        ]
        for row in pages
    ]
    stepped = [
        [
            _page_label(row),
            row["stops"],
            *[
                f"{row[f'{name}milliseconds']:.0f} / {row[f'{name}milliseconds_95']:.0f}"
                for name in ("", "drawn_", "drag_")
            ],
            row["load"],
        ]
        for row in kinds["a slider step"]
    ]
    space = next(row["space_milliseconds"] for row in pages if row["tasks"] == 3)
    debugged = [row["debugged_milliseconds"] for row in kinds["open the page"]]
    hostile = kinds["a hostile page"][0]
    parts = [
        table(["page", "size, MB", *[f"{stage}, ms" for stage in stages], "load"], opened),
        "",
        f"The 3D view of three tasks, behind its tab, takes {space} ms from the click. With a debugger, pages open in "
        f"{min(debugged)} to {max(debugged)} ms. The last page has names that are markup, formulas, right-to-left text "
        f"or far too long; it sends {hostile['requests'] or 'no'} requests, and is written in "
        f"{hostile['write_seconds']:.0f} s.",
        "",
        table(["a slider's step", "stops", "text and mark, ms", "charts, too, ms", "in a drag, ms", "load"], stepped),
        "",
        provenance(path, rows[0]),
    ]
    return "\n".join(parts)


def _page_label(row: dict[str, Any]) -> str:
    runs = "1 run" if row["runs"] == 1 else f"{row['runs']} runs"
    return f"{row['tasks']} tasks, {runs} of {row['solutions']} models"


CONTENDERS = {
    "graphed": "graphed",
    "batched": "batched",
    "sequential": "sequential",
    "paper": "paper",
    "torchjd": "TorchJD",
    "sum": "sum",
}


def front_tables(device: str) -> str:
    """A step of a whole front compared with others, by models, tasks and precision."""
    path = ROOT / "benchmarks" / "results" / f"front-{device}.json"
    rows = load_rows(path)
    cells: dict[tuple[str, int, int, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        key = (row["model"], row["models"], row["tasks"], row["precision"])
        cells.setdefault(key, {})[row["contender"]] = row
    usual = {model: next(t for m, _, t, _ in cells if m == model) for model, _, _, _ in cells}
    names = [name for name in CONTENDERS if any(name in by for by in cells.values())]
    first = "graphed" if device == "cuda" else "sequential"
    others = [name for name in names if name != first]
    header = ["network × K, m tasks", first, "floor", f"paper / {first}", *[CONTENDERS[n] for n in others], "peak, MB"]

    def line(by: dict[str, dict[str, Any]]) -> list[str]:
        times = {name: row["milliseconds"] for name, row in by.items() if row["milliseconds"] is not None}
        ratio = f"{times['paper'] / times[first]:.1f}" if {"paper", first} <= times.keys() else "–"
        peak = by.get(first, {}).get("peak_megabytes")
        floor = _short(next(iter(by.values()))["floor_milliseconds"])
        mine, *rest = (_short(times[name]) if name in times else "–" for name in (first, *others))
        return [mine, floor, ratio, *rest, "–" if peak is None else f"{peak:,.0f}"]

    def label(network: str, models: int, tasks: int) -> str:
        return f"{network} × {models}, m = {tasks}".replace(" ", "\u00a0")

    exact = {(m, k, t): by for (m, k, t, p), by in cells.items() if p == "float32"}
    by_models = [[label(*key), *line(by)] for key, by in exact.items() if key[2] == usual[key[0]]]
    by_tasks = [[label(*key), *line(by)] for key, by in sorted(exact.items()) if key[1] == 5]
    parts = [table(header, by_models), "", "With more tasks:", "", table(header, by_tasks)]
    other = [
        [m, p, _milliseconds(by[first]), _milliseconds(by["sequential"])]
        for (m, k, t, p), by in cells.items()
        if k == 5 and t == usual[m] and {first, "sequential"} <= by.keys()
    ]
    if device == "cuda":
        columns = ["network, 5 models", "precision", f"{CONTENDERS[first]}, ms", "sequential, ms"]
        parts += ["", "Precisions:", "", table(columns, sorted(other, key=str))]
    return "\n".join([*parts, "", provenance(path, rows[0])])


def _milliseconds(row: dict[str, Any]) -> str:
    return row["why"] if row["milliseconds"] is None else _short(row["milliseconds"])


def _short(number: float) -> str:
    """Three digits, and no exponent."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def profile_table() -> str:
    """Where the time of a captured step goes."""
    path = ROOT / "benchmarks" / "results" / "profile-cuda.json"
    rows = load_rows(path)
    groups = list(dict.fromkeys(name for row in rows for name in row["groups"]))
    lines = [
        [
            *[row[name] for name in ("models", "by", "kernels", "milliseconds")],
            f"{row['idle']:.0%} / {row['idle_profiled']:.0%}",
            *[f"{row['groups'].get(name, 0.0):.3f}" for name in groups],
        ]
        for row in rows
    ]
    header = ["models", "by", "kernels", "ms", "idle / profiled", *groups]
    return "\n".join([table(header, lines), "", provenance(path, rows[0])])


def quality_tables() -> str:
    """Whole fronts: time and hypervolume of every mode."""
    path = ROOT / "benchmarks" / "results" / "quality-cuda.json"
    rows = load_rows(path)
    runs = [[row["seed"], row["seconds"], f"{row['hypervolume']:.3f}"] for row in rows if row["what"] == "run"]
    modes: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["what"] == "mode":
            modes.setdefault(row["mode"], []).append(row)
    base = [row["hypervolume"] for row in next(iter(modes.values()))]
    lines = []
    for name, mine in modes.items():
        values = [row["hypervolume"] for row in mine]
        apart = [value - other for value, other in zip(values, base, strict=True)]
        shown = f"{mean(apart):+.3f} ± {stdev(apart):.3f}" if any(apart) else "–"
        lines.append([name, mine[0]["seconds"], f"{mean(values):.3f} ± {stdev(values):.3f}", shown])
    return "\n".join(
        [
            table(["one front of 5 models, 30 epochs; seed", "seconds", "hypervolume"], runs),
            "",
            table(
                [f"{len(base)} fronts at once, {mine[0]['epochs']} epochs", "seconds", "hypervolume", "difference"],
                lines,
            ),
            "",
            provenance(path, rows[0]),
        ]
    )


def every_table() -> str:
    """Weights that are updated every n steps."""
    path = ROOT / "benchmarks" / "results" / "weigh_every.json"
    rows = load_rows(path)
    lines = []
    for every in dict.fromkeys(row["weigh_every"] for row in rows):
        mine = [row for row in rows if row["weigh_every"] == every]
        values, seconds = ([row[name] for row in mine] for name in ("hypervolume", "seconds"))
        lines.append([every, f"{mean(values):.3f} ± {stdev(values):.3f}", f"{median(seconds):.1f}"])
    shown = table(["weights every n steps", "hypervolume", "seconds, median"], lines)
    return "\n".join([shown, "", provenance(path, rows[0])])


def dual_table() -> str:
    """The dual compared with the step that it serves."""
    path = ROOT / "benchmarks" / "results" / "dual-cpu.json"
    if not path.exists():
        return "*Not measured yet:* `python benchmarks/dual.py`."
    rows = load_rows(path)
    counts = sorted({row["preferences"] for row in rows})
    lines = []
    for tasks in sorted({row["tasks"] for row in rows}):
        by = {row["preferences"]: row for row in rows if row["tasks"] == tasks}
        shares = [f"{by[count]['weigh_milliseconds']:.2f} ms, {by[count]['share']:.1%}" for count in counts]
        lines.append([tasks, f"{by[counts[0]]['step_milliseconds']:.0f} ms", *shares])
    header = ["tasks", "one step", *[f"dual, K = {count}" for count in counts]]
    return "\n".join([table(header, lines), "", provenance(path, rows[0])])


def plan_table(name: str) -> str:
    """What the plan computes."""
    return table(*plan.TABLES[name](plan.Plan()))


def plan_check(name: str) -> str:
    """How well the plan fits what was measured."""
    return table(*plan.CHECKS[name]())


def plan_inputs() -> str:
    """What the plan assumes."""
    assumed = plan.Plan()
    words = re.findall(r"^        (\w+): (.*)$", plan.Plan.__doc__ or "", re.MULTILINE)
    return table(["input", "what", "value"], [[f"`{n}`", what, f"{getattr(assumed, n):,.4g}"] for n, what in words])


def shards_table() -> str:
    """Shares of the models on each core."""
    path = ROOT / "benchmarks" / "results" / "shards.json"
    rows = load_rows(path)
    ways = list(dict.fromkeys(row["way"] for row in rows))
    lines = []
    for models, batch in dict.fromkeys((row["models"], row["batch"]) for row in rows):
        by = {row["way"]: row for row in rows if (row["models"], row["batch"]) == (models, batch)}
        ratios = [f"{by[way]['over_one_after_another']:.2f}" for way in ways[1:]]
        lines.append([models, batch, by[ways[0]]["milliseconds"], *ratios])
    header = ["models", "batch", f"{ways[0]}, ms", *[f"{way}, over that" for way in ways[1:]]]
    return "\n".join([table(header, lines), "", provenance(path, rows[0])])


def faults_table() -> str:
    """How many faults runs went through, by kind, and what became of them."""
    path = ROOT / "stress" / "results" / "faults.json"
    (row,) = load_rows(path)
    lines = [[kind, count] for kind, count in row["kinds"].items()]
    lines.append(["all", row["faults"]])
    said = f"Runs that were lost, or ended otherwise than without the fault: {len(row['failures'])}."
    return "\n".join([table(["fault", "times"], lines), "", f"{said} {provenance(path, row)}"])


def distributed_table() -> str:
    """Bytes and time of a step that processes share."""
    path = ROOT / "benchmarks" / "results" / "distributed.json"
    rows = load_rows(path)
    names = {
        "gramian": "MGDA, all gradients",
        "representation": "MGDA, representation",
        "linear": "linear",
        "ddp": "DDP, mean of the losses",
    }
    lines = [
        [
            row["tasks"],
            names[row["step"]],
            f"{row['bytes'] / 1e6:.2f} MB",
            f"{row['over_parameters']:.2f}",
            f"{row['least_one']:.0f} ms",
            f"{row['least_shared']:.0f} ms",
        ]
        for row in rows
    ]
    header = ["tasks", "step", "sent per process", "over the parameters", "one process", "two processes"]
    told = (
        f"One thread a process, gloo; the least of {rows[0]['rounds']} rounds. Load average of the machine meanwhile: "
        f"{rows[0]['load']} on {rows[0]['cores']} cores, of which the measurement itself is up to 2."
    )
    return "\n".join([table(header, lines), "", told, "", provenance(path, rows[0])])


def fuzz_table() -> str:
    """What loaders made of inputs that were changed."""
    path = ROOT / "stress" / "results" / "fuzz.json"
    if not path.exists():
        return "*Not run yet:* `python stress/fuzz.py`."
    rows = load_rows(path)
    names = ("inputs", "accepted", "refused", "failed")
    lines = [
        [row["format"], *[f"{row[name]:,}" for name in names], f"{row['slowest_seconds']:.2f}", row["peak_megabytes"]]
        for row in rows
    ]
    lines.append(["**all**", *[f"**{sum(row[name] for row in rows):,}**" for name in names], "", ""])
    return "\n".join([table(["format", *names, "slowest, s", "memory, MB"], lines), "", provenance(path, rows[0])])


def checksum_table() -> str:
    """What the canvases of seed 0 must be."""
    return table(
        ["data set", "SHA-256 of its arrays, seed 0"], [[f"`{n}`", f"`{sha}`"] for n, sha in PUBLISHED.items()]
    )


def file_table() -> str:
    """The published files that canvases are made of."""
    lines = [[each.name, f"`{file}`", f"`{md5}`"] for each in SOURCES.values() for file, md5 in each.md5.items()]
    return table(["set", "file", "md5"], lines)


def census_table() -> str:
    """The published text of Census-Income (KDD), and what is made of it."""
    lines = [[f"`{file.removesuffix('.gz')}`, unpacked", f"md5 `{md5}`"] for file, md5 in CENSUS.md5.items()]
    return table(["what", "checksum"], [*lines, ["the arrays of `census.npz`", f"SHA-256 `{PUBLISHED_CENSUS}`"]])


def _operations(row: dict[str, Any]) -> str:
    return " and ".join(f"{n} {name.removesuffix('s') if n == 1 else name}" for name, n in row["operations"].items())


def table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    shown = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in shown)


def provenance(path: Path, *rows: dict[str, Any]) -> str:
    """What made the rows of a file, when and on what: each hardware with its last versions."""
    command = json.loads(path.read_text(encoding="utf-8"))["command"]
    last = {row["hardware"]: row for row in sorted(rows, key=lambda row: row["date"])}
    made = []
    for hardware, row in last.items():
        days = sorted({each["date"] for each in rows if each["hardware"] == hardware})
        versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items() if version != "absent")
        made.append(f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, {hardware}; {versions}")
    return f"`{command}`, {'. '.join(made)}. All rows: `{path.relative_to(ROOT)}`."
