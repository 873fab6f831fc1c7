"""Which split ranks solutions, and which one is shown beside it. The rule is stated here, and in docs/choosing.md."""

from __future__ import annotations

from collections.abc import Collection


def ranking_split(splits: Collection[str]) -> str:
    """The split that choices and rankings go by: validation if there is one, else training. Never test.

    Example:
        >>> ranking_split(["train", "val", "test"]), ranking_split(["train", "test"])
        ('val', 'train')
    """
    return "val" if "val" in splits else "train"


def shown_splits(splits: Collection[str]) -> tuple[str, ...]:
    """The splits that tables and figures show: the one that ranks, and test beside it if there is one.

    Example:
        >>> shown_splits(["train", "val", "test"]), shown_splits(["train"])
        (('val', 'test'), ('train',))
    """
    return (ranking_split(splits), *(["test"] if "test" in splits else []))
