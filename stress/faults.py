"""Every fault at every write of a run: kills, torn writes, refused calls, cut power; stored in stress/results.

    PYTHONPATH=tests python stress/faults.py [COUNT]

Without COUNT, each fault that there is happens once; tests/training/faulty_run.py says what must hold.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from paretomtl._files import write_text
from paretomtl.experiments._store import environment
from training.faulty_run import measure

RESULT = Path(__file__).parent / "results" / "faults.json"
SEED, CHAINS = 0, 50


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else None
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder).resolve(), count, CHAINS, SEED)
    row = {"seed": SEED, **found, "seconds": round(time.perf_counter() - began, 1), **environment()}
    command = "make stress" if count is None else f"PYTHONPATH=tests python stress/faults.py {count}"
    write_text(RESULT, json.dumps({"name": "faults", "command": command, "rows": [row]}, indent=1) + "\n")
    print(f"{row['faults']} faults, {len(found['failures'])} failures: {RESULT}")
    for failure in found["failures"]:
        print(failure)
    sys.exit(1 if found["failures"] else 0)


if __name__ == "__main__":
    main()
