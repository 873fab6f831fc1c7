"""Claims of the paper, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paretomtl._support.significance import adjusted, difference, mean
from paretomtl.methods.registry import paper_label_of
from paretomtl.paper.number_text import starred


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the measurement, and the verdict."""

    where: str
    claim: str
    measured: str
    verdict: str


def judge(holds: bool, partly: bool = False) -> str:
    """The verdict on a claim."""
    return "reproduced" if holds else "partly" if partly else "not reproduced"


def measured_claim(
    where: str, claim: str, what: str, parts: Sequence[str], verdict: str, *, whole: bool = True
) -> Claim:
    """A claim with its measurements, part by part.

    Without parts it is not judged. If some are missing (``whole`` is False), the verdict holds "so far".
    """
    if not parts:
        return Claim(where, claim, "no rows are stored for it yet", "not measured")
    return Claim(where, claim, f"{what}: {'; '.join(parts)}", verdict if whole else f"so far {verdict}")


def compare_means(
    own: Sequence[float], rivals: Mapping[str, Sequence[float]], digits: int = 3
) -> tuple[str, list[int]]:
    """The mean and its difference to that of each rival as text, and the sign of each difference, 0 within seeds."""
    gaps = dict(zip(rivals, adjusted([difference(own, values) for values in rivals.values()]), strict=True))
    text = ", ".join(f"{starred(gap, digits)} to {paper_label_of(method)}" for method, gap in gaps.items())
    return f"{mean(own):.{digits}f}: {text}", [gap.sign for gap in gaps.values()]


def count_signs(signs: Sequence[int]) -> str:
    """How many comparisons are better, equal within seeds, and worse, as text."""
    better, equal, worse = (signs.count(sign) for sign in (1, 0, -1))
    return f"better in {better} of {len(signs)}, not to be told apart in {equal}, worse in {worse}"


def better_verdict(signs: Sequence[int]) -> str:
    """The verdict on being better than all others; "partly" if it is more often better than worse."""
    return judge(all(sign > 0 for sign in signs), sum(signs) > 0)
