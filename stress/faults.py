"""Every fault at every write of a run: kills, torn writes, refused calls, cut power; stored in stress/results.

    PYTHONPATH=tests python stress/faults.py [COUNT]

Faults are drawn from all kinds at all writes; "all" runs each once, which takes an hour. tests/_helpers/faulty_run.py
says what must hold.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from _helpers.faulty_run import measure
from paretomtl._support.files.atomic_files import write_text
from paretomtl.compare.row_store import environment

RESULT = Path(__file__).parent / "results" / "faults.json"
SEED, COUNT, CHAINS = 0, 400, 30


def main() -> None:
    asked = sys.argv[1] if len(sys.argv) > 1 else str(COUNT)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder).resolve(), None if asked == "all" else int(asked), CHAINS, SEED)
    row = {"seed": SEED, **result, "seconds": round(time.perf_counter() - began, 1), **environment()}
    command = f"PYTHONPATH=tests python stress/faults.py {asked}"
    write_text(RESULT, json.dumps({"name": "faults", "command": command, "rows": [row]}, indent=1) + "\n")
    print(f"{row['faults']} faults, {len(result['failures'])} failures: {RESULT}")
    for failure in result["failures"]:
        print(failure)
    sys.exit(1 if result["failures"] else 0)


if __name__ == "__main__":
    main()
