"""Verdicts of a comparison: how often do they name somebody behind where nobody is, and how often where one is ahead?

    python benchmarks/verdicts.py      # writes benchmarks/results/verdicts.json

The hypervolumes of each method and seed are drawn: noise of deviation 1, and an effect of deviation 1 that the methods
of a seed share. One row stands for `comparisons` of them with each effect, and `nulls` without any.

- `false`: the share of verdicts that name somebody behind, without any difference between methods.
- `found`: the share that names a method behind that is, with one method ahead of all others by `effect` deviations.
- `unequal`: the deviations of methods are spread between 1 and 3. `rounded`: to whole deviations, so that many tie.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl.compare import Row, Summary, environment, save_rows, verdict

COMPARISONS, EFFECTS = 1000, (1, 2, 4)
NULLS = 40_000  # methods in all comparisons without a difference, whose share is small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out / "verdicts.json"
    rows, where = [], environment()
    print("noise      seeds  methods  false  " + "  ".join(f"found at {effect}" for effect in EFFECTS))
    for noise in ("normal", "t3", "unequal", "rounded"):
        for seeds in (5, 10):
            for methods in (2, 4, 8, 12):
                rows.append({**measured(noise, seeds, methods), **where})
                found = "  ".join(f"{value:10.3f}" for value in rows[-1]["found"].values())
                print(f"{noise:10} {seeds:5}  {methods:7}  {rows[-1]['false']:.3f}  {found}")
    save_rows(out, "verdicts", "python benchmarks/verdicts.py", rows)


def measured(noise: str, seeds: int, methods: int) -> Row:
    """The shares of one kind of noise and size of a comparison."""
    generator = np.random.default_rng(0)
    shares = {}
    for effect in (0, *EFFECTS):
        named, count = 0, COMPARISONS if effect else NULLS // methods
        for _ in range(count):
            values = drawn(noise, (methods, seeds), generator)
            values[0] += effect
            said = verdict(summaries_of(values))
            behind = said.split("seeds.")[-1] if "behind by more" in said else ""
            named += "method-1 " in behind if effect else bool(behind)
        shares[effect] = named / count
    found = {str(effect): shares[effect] for effect in EFFECTS}
    size = {"noise": noise, "seeds": seeds, "methods": methods, "comparisons": COMPARISONS, "nulls": NULLS // methods}
    return {**size, "false": shares[0], "found": found}


def drawn(noise: str, shape: tuple[int, int], generator: np.random.Generator) -> np.ndarray:
    """Hypervolumes ``[methods, seeds]``."""
    values = generator.standard_normal(shape)
    if noise == "t3":
        values = generator.standard_t(3, shape) / 3**0.5
    elif noise == "unequal":
        values *= 3 ** generator.random((shape[0], 1))
    elif noise == "rounded":
        values = values.round()
    return 100 + values + generator.standard_normal(shape[1]).round()


def summaries_of(values: np.ndarray) -> list[Summary]:
    """The summaries of methods with these hypervolumes, best first."""
    order = values.mean(1).argsort()[::-1].tolist()
    return [Summary(f"method-{i} ", 5, tuple(values[i].tolist()), False, float(i), [0.1, 0.1], 5.0, 1.0) for i in order]


if __name__ == "__main__":
    main()
