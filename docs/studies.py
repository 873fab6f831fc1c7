"""Results of the studies as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from tables import ROOT, provenance, table

from paretomtl._support.significance import rank_correlation
from paretomtl.compare import common_reference, load_rows, summaries, tight_references, verdict
from paretomtl.compare.rows import read_row
from paretomtl.methods.registry import paper_label_of
from paretomtl.paper import STUDIES
from paretomtl.paper.evidence.verdicts import COLUMNS, by_setting, table_lines
from paretomtl.paper.images.cells import LONG, PAPER, SET_TITLES, STRONG
from paretomtl.paper.images.tables import method_lines
from paretomtl.paper.real_data import faces, localization, three_digits
from paretomtl.paper.real_data.cells import EVEN
from paretomtl.paper.real_data.dominance import dominance_facts
from paretomtl.paper.real_data.tables import TABLE_METRICS, cell_lines, metrics_of, scale_lines, vector_lines
from paretomtl.paper.runner import stored_study
from paretomtl.paper.study import describe_divergence

RESULTS = ROOT / "experiments" / "results"
_SCALED = {"census": EVEN, "faces": "", "localization": "", "three-digits": None}
"""Studies with tables in place of facts in words, and the cell that those with scaled losses are set beside."""
_SHOWN = 7  # cells that are named of those that are missing


def study_tables(name: str) -> str:
    """The claims of the paper with their verdicts, and what was measured besides, for a study that may be under way."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return f"*Not run yet:* `paretomtl reproduce {name}`."
    study = STUDIES[name]
    found = stored_study(name, study, path.parent)
    if not found.rows:
        return "\n".join(_still_missing(found.missing))
    try:
        claims = [[c.claim, c.where, c.measured, f"**{c.verdict}**"] for c in study.claims(found.rows)]
        facts = [] if name == "beyond" else study.facts(found.rows)  # its tables say more
    except ValueError as error:  # what claims speak of may not be there yet
        if not found.missing:
            raise
        return "\n".join(
            [f"*Not judged yet:* {error}", "", *_still_missing(found.missing), provenance(path, *found.rows)]
        )
    asked = "question" if name == "beyond" else "the paper's claim"
    parts = [table([asked, "where", "measured", "verdict"], claims), ""] if claims else []
    broken = describe_divergence(found.rows)
    parts += [f"**{broken}**", ""] if broken else []
    if name in _SCALED:
        parts += _task_tables(found.rows, _SCALED[name])
        facts = dominance_facts(found.rows)
    if name == "beyond":
        parts += _setting_tables(found.rows)
    if facts:
        parts += ["**Measured besides**", "", table(["what", "figure"], facts), ""]
    return "\n".join([*parts, *_still_missing(found.missing), provenance(path, *found.rows)])


def _still_missing(cells: Sequence[str]) -> list[str]:
    if not cells:
        return []
    rest = len(cells) - _SHOWN
    return [f"**Not run yet:** {'; '.join(cells[:_SHOWN])}{f'; and {rest} more cells' if rest > 0 else ''}.", ""]


def image_tables() -> str:
    """The three sets with both recipes, one table each."""
    path = RESULTS / "images-lenet.json"
    stored = stored_study("images-lenet", STUDIES["images-lenet"], path.parent)
    rows, parts = stored.rows, []
    for problem, title in SET_TITLES.items():
        if any(row["problem"] == problem for row in rows):
            parts += [f"### {title}", ""]
        for part in (PAPER, STRONG, LONG):
            found = method_lines(rows, problem, part)
            if not found:
                continue
            lines = [
                [
                    f"{paper_label_of(line.method)}{'*' if line.ideal else ''}",
                    line.hypervolume,
                    line.error_hypervolume,
                    *line.accuracy,
                    line.spread,
                    " / ".join(line.regions) if any(line.regions) else "",
                    line.seconds,
                ]
                for line in found
            ]
            first = next(row for row in rows if row["problem"] == problem and row["part"] == part)
            header = ["method", "hypervolume", "of errors", *[f"best {task}" for task in first["tasks"]]]
            seeds = len({row["seed"] for row in rows if row["problem"] == problem and row["part"] == part})
            shown = PAPER if part == LONG else part
            parts += [
                f"{shown.capitalize()}, {first['epochs']} epochs, {seeds} seed{'s' if seeds > 1 else ''}:",
                "",
                table([*header, "spread", "in region", "seconds"], lines),
                "",
            ]
    return "\n".join([*parts, *_still_missing(stored.missing), provenance(path, *rows)])


def _task_tables(rows: Sequence[dict[str, Any]], base: str | None) -> list[str]:
    """Every cell by part of the study; then what scaled losses change, where there are any."""
    best = [f"best {metric}" for metric in metrics_of(rows[0])[: len(rows[0]["tasks"])]]
    lines, parts = cell_lines(rows), []
    for part in dict.fromkeys(line.part for line in lines):
        mine = [line for line in lines if line.part == part]
        header = [
            "method",
            "models",
            "seeds",
            "hypervolume",
            "spread",
            "not dominated",
            "in region, training / test",
            *best,
        ]
        shown = [
            [
                f"{each.label}{'' if each.spread else '*'}",
                each.models,
                each.seeds,
                each.hypervolume,
                each.spread,
                each.nondominated,
                " / ".join(filter(None, each.regions)),
                *each.best,
                each.seconds,
            ]
            for each in mine
        ]
        said = f"**{part.capitalize()}**, on test, mean ± standard deviation over seeds; * one point made of separate"
        parts += [f"{said} networks:", "", table([*header, "seconds a front"], shown), ""]
    for part in [] if base is None else dict.fromkeys(line.part for line in lines):
        scales = scale_lines([row for row in rows if row["part"] == part], base)
        if len(scales) < 2:
            continue
        header = ["losses", "hypervolume", "spread", "in region, training / test", "the same, unscaled", *best]
        shown = [
            [each.losses, each.hypervolume, each.spread, " / ".join(each.regions), " / ".join(each.plain), *each.best,
             each.verdict]
            for each in scales
        ]  # fmt: skip
        said = f"**Losses scaled before regions are decided**, Pareto MTL, {part}; hypervolume and spread are unscaled:"
        parts += [said, "", table([*header, "beside losses as they are"], shown), ""]
    return parts


def paper_table(name: str) -> str:
    """The table of the paper, on its own data, beside what was measured."""
    problem, paper = {"faces": ("utkface", faces.PAPER_TABLE), "localization": (name, localization.PAPER_TABLE)}[name]
    found = stored_study(name, STUDIES[name], RESULTS).rows
    shown = TABLE_METRICS[problem]
    if not found:
        lines = [[each, *numbers] for each, numbers in paper.items()]
        return table(["in the paper, on other data", *shown], lines)
    header = ["mean over seeds, on test", *metrics_of(found[0]), "in region, training / test"]
    lines = [
        [each.name, *each.values, " / ".join(filter(None, each.regions)), *(each.paper or [""] * len(shown))]
        for each in vector_lines(found, paper)
    ]
    return table([*header, *[f"{metric}, the paper's, on other data" for metric in shown]], lines)


def counts_table() -> str:
    """Three digits: what more vectors cover."""
    path = RESULTS / "three-digits.json"
    found = stored_study("three-digits", STUDIES["three-digits"], RESULTS).rows
    mine = [row for row in found if row["note"] in {f"{count} even" for count in three_digits.COUNTS}]
    lines = [
        [line.models, line.hypervolume, line.spread, line.nondominated, " / ".join(line.regions), line.seconds]
        for line in cell_lines(mine)
    ]
    header = ["vectors", "hypervolume", "spread", "not dominated", "in region, training / test", "seconds a front"]
    return "\n".join([table(header, lines), "", provenance(path, mine[0])])


def stack_table() -> str:
    """Time and memory of 25 models with three tasks."""
    path = ROOT / "benchmarks" / "results" / "stack-cuda.json"
    rows = load_rows(path)
    lines, order = [], ("sequential", "batched", "graphed")
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = {row["strategy"]: row for row in rows if row["model"] == model}
        times, peaks = ([mine[s][what] for s in order] for what in ("milliseconds", "peak_megabytes"))
        ratio = f"{times[0] / times[-1]:.3g}×"
        lines.append([model, *[f"{t:.4g}" for t in times], ratio, *[f"{peak / 1000:.2f}" for peak in peaks]])
    header = ["25 of", "in turn, ms", "stack, ms", "captured, ms", "faster", "in turn, GB", "stack, GB", "captured, GB"]
    return "\n".join([table(header, lines), "", provenance(path, *rows)])


def recipe_table() -> str:
    """The recipes that were tried."""
    path = RESULTS / "recipes.json"
    rows = load_rows(path)
    fields = ("rate", "weight_decay", "schedule", "batch_size", "beta", "method")
    lines = []
    for key in dict.fromkeys(tuple(row[name] for name in fields) for row in rows):
        mine = [row["hypervolume"] for row in rows if tuple(row[name] for name in fields) == key]
        lines.append((mean(mine), [*key[:5], paper_label_of(key[5]), ", ".join(f"{value:.3f}" for value in mine)]))
    header = [
        "learning rate",
        "weight decay",
        "schedule",
        "batch",
        "β₂",
        "method",
        "hypervolume on validation, by seed",
    ]
    ordered = [line for _, line in sorted(lines, key=lambda pair: -pair[0])]
    return "\n".join([table(header, ordered), "", provenance(path, *rows)])


def multi_mnist_rows() -> list[dict[str, Any]]:
    """The stored rows of all methods on MultiMNIST with the strong recipe; their losses are on test and training."""
    rows = [row for row in load_rows(RESULTS / "images-lenet.json") if row["problem"] == "multi-mnist"]
    return [{**row, "split": "test"} for row in rows if (row["part"], row["stage"]) == (STRONG, "final")]


def indicator_table() -> str:
    """The indicators of all methods on test, on MultiMNIST and on multi-digits."""
    digits = load_rows(RESULTS / "multi-digits" / "compare.json")
    lines, united, notes = [], [], []
    for name, rows in (("MultiMNIST", multi_mnist_rows()), ("multi-digits", digits)):
        for each in summaries(rows):
            test = each.test
            if test is None or test.tight_hypervolume is None:
                continue
            three = [pair for pair in (test.regret, test.r2, test.igd_plus) if pair is not None]
            if three:
                united.append([name, each.method, *(f"{value:.3f} ± {error:.3f}" for value, error in three)])
            mark = "*" if each.ideal else ""
            volumes = [
                f"{volume:.{places}f} ± {error:.{places}f}{mark}"
                for (volume, error), places in ((test.hypervolume, 3), (test.tight_hypervolume, 4))
            ]
            share, delta = test.box_share, test.delta_m
            lines.append(
                [
                    name,
                    each.method,
                    *volumes,
                    "" if share is None else f"{100 * share:.1f} %",
                    "" if delta is None else f"{delta:+.1f} %",
                    "" if each.in_region is None else f"{100 * each.in_region:.0f} %",
                ]
            )
        point = ", ".join(f"{value:.3f}" for value in tight_references(rows)["test"])
        notes.append(f"({point}) on {name}")
    header = [
        "problem",
        "method",
        "hypervolume at (2, 2)",
        "at the tight reference",
        "of the box",
        "best Δm",
        "in region",
    ]
    text = (
        f"Test losses, mean ± standard deviation over 5 seeds. Tight references: {', '.join(notes)}. Best Δm: of the "
        "model with the best Δm on the split that ranks: validation on multi-digits, training on MultiMNIST. In "
        "region: on training. * one point made of the best losses of separate networks."
    )
    against = (
        "Regret, R2 and IGD+ against all methods and seeds of the problem, on test, mean ± standard deviation over 5 "
        "seeds; lower is better. Models are chosen on validation on multi-digits, and on training on MultiMNIST."
    )
    more = table(["problem", "method", "regret", "R2", "IGD+"], united)
    return "\n".join([table(header, lines), "", text, "", more, "", against])


def digits_table() -> str:
    """All methods on multi-digits."""
    path = RESULTS / "multi-digits" / "compare.json"
    rows = [read_row(row) for row in load_rows(path)]
    found = summaries(rows)
    tasks, split = rows[0]["tasks"], found[0].split
    lines = [
        [
            each.method,
            each.models,
            *[
                f"{part.hypervolume[0]:.3f} ± {part.hypervolume[1]:.3f}{'*' if part.ideal else ''}"
                for part in (each, each.test)
            ],
            *[f"{part.spread:.2f}" for part in (each, each.test)],
            *[f"{part.best[i]:.3f}" for i in range(len(tasks)) for part in (each, each.test)],
            f"{each.nondominated:.1f}",
            f"{each.seconds:.0f}",
        ]
        for each in found
    ]
    shown = ["hypervolume", "spread", *[f"best {task}" for task in tasks]]
    columns = [f"{name}, {part}" for name in shown for part in (split, "test")]
    header = ["method", "models", *columns, f"not dominated, {split}", "seconds"]
    reference = ", ".join(f"{value:g}" for value in common_reference(rows))
    return "\n".join(
        [
            table(header, lines),
            "",
            f"Mean ± standard deviation over {found[0].seeds} seeds, reference ({reference}); methods are ranked on "
            f"{split}, and test is shown beside it. *Best* on test is the loss there of the model that is best on "
            f"{split}. * one point made of the best losses of separate networks. Seconds are means.",
            "",
            f"**Verdict.** {verdict(found)}",
            "",
            f"**Order.** Rank correlation of Pareto MTL's losses on {split} with the preferences, from (1, 0) to (0, "
            f"1): {_orders(rows, split)}. In their own region on training: {_hits(rows)} of 5.",
            "",
            provenance(path, *rows),
        ]
    )


def _orders(rows: Sequence[dict[str, Any]], split: str) -> str:
    """For each task the range over seeds of the rank correlation between subproblem and loss."""
    mine = [row for row in rows if row["method"] == "pareto-mtl"]
    parts = []
    for i, task in enumerate(mine[0]["tasks"]):
        points = [row["losses"][split] for row in mine]
        found = [rank_correlation(range(len(some)), [point[i] for point in some]) for some in points]
        parts.append(f"{min(found):.1f} to {max(found):.1f} for {task}")
    return ", ".join(parts)


def _hits(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(str(row["in_region"]) for row in rows if row["method"] == "pareto-mtl")


def _setting_tables(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table of each problem of the study ``beyond``."""
    parts = []
    for title in by_setting(rows):
        parts += [f"### {title}", "", table(list(COLUMNS), table_lines(rows, title)), ""]
    return parts
