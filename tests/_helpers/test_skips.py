from __future__ import annotations

from _helpers.skips import not_run


def test_what_is_left_out_is_said_in_one_line() -> None:
    reasons = ["Skipped: no CUDA device"] * 3
    reasons += ["no Chromium that runs here: BrowserType.launch", "Playwright is not installed"]
    reasons += ["Ray is not installed: pip install 'paretomtl[ray]'", "root may write everywhere"]
    reasons += ["needs the files of utkface in ../shared/data beside the repository"] * 4
    assert not_run(reasons) == (
        "Not run here: 4 tests on ../shared/data (not there), 3 on a GPU (none here), 2 in a browser (no Chromium), "
        "1 on Ray (not installed), 1 (root may write everywhere)"
    )


def test_nothing_is_said_of_nothing() -> None:
    assert not_run([]) == ""
    assert not_run(["no CUDA device"]) == "Not run here: 1 test on a GPU (none here)"
