"""What was measured of runs in shards, as Markdown tables."""

from __future__ import annotations

from tables import ROOT, provenance, table

from paretomtl.compare import load_rows


def ray_table() -> str:
    """Workers of Ray compared with one process."""
    path = ROOT / "benchmarks" / "results" / "ray-workers.json"
    if not path.exists():
        return "Not measured yet: `python benchmarks/ray_workers.py`."
    rows = load_rows(path)
    lines = [
        [r["way"], r["threads"], r["seconds"], f"{min(r['all_seconds'])} to {max(r['all_seconds'])}",
         r["speedup_over_one_worker"]]
        for r in rows
    ]  # fmt: skip
    header = ["way", "threads of each", "seconds, median", "from, to", "one worker over this"]
    first = rows[0]
    load = f"Load average of the machine meanwhile: {first['load']}, of which the measurement itself is up to 2."
    return f"{table(header, lines)}\n\n{load} {provenance(path, first)}"


def stress_tables() -> str:
    """What `make stress` found of Ray, of many subproblems and of many steps."""
    kills, load = (ROOT / "stress" / "results" / f"{name}.json" for name in ("ray-kills", "load"))
    killed = [
        [r["kills"], r["passes_needed"], r["passes_taken"], r["passes_allowed"],
         f"{r['resumed_where_it_was_stored']} of {r['killed_with_a_checkpoint']}",
         "yes" if r["same_front_bit_by_bit"] else "no"]
        for r in load_rows(kills)
    ]  # fmt: skip
    many = [
        [r["way"], r["seconds"], r["peak_mib"], r["stored_mib"], r["load"]]
        for r in load_rows(load) if r["what"] == "500 subproblems"
    ]  # fmt: skip
    soaked = [
        [r["way"], r["steps"], r["first_mib"], r["last_mib"],
         f"{r['growth_mib']} ({r['growth_low_mib']} to {r['growth_high_mib']})"]
        for r in load_rows(load) if r["what"] == "soak"
    ]  # fmt: skip
    header = ["workers killed", "passes needed", "taken", "allowed", "resumed where they were stored", "the same front"]
    return "\n\n".join(
        [
            table(header, killed),
            "A pass is a forward pass of a training step; allowed are those that a kill interrupted, and the checks "
            f"before each start. {provenance(kills, load_rows(kills)[0])}",
            table(["500 subproblems", "seconds", "peak, MiB", "stored, MiB", "load average"], many),
            table(["soak", "steps", "MiB at first", "MiB at last", "growth, 95 % interval"], soaked)
            if soaked
            else "The soak is not measured yet: `python stress/load.py --only soak`.",
            provenance(load, load_rows(load)[0]),
        ]
    )
