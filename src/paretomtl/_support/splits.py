"""Splits: the one that ranks solutions, and those that are shown. The rule is stated here, and in docs/choosing.md."""

from __future__ import annotations

from collections.abc import Collection

SPLITS = ("train", "val", "test")
"""The splits that losses and metrics may be measured on."""


def ranking_split(splits: Collection[str]) -> str:
    """The split that choices and rankings go by: validation if there is one, else training.

    It is test only for a front that was given with nothing else.

    Example:
        >>> ranking_split(["train", "val", "test"]), ranking_split(["train", "test"]), ranking_split(["test"])
        ('val', 'train', 'test')
    """
    return "val" if "val" in splits else "test" if set(splits) == {"test"} else "train"


def training_split(splits: Collection[str]) -> str:
    """The split of regions, which are constraints of training; that which ranks where none of training is given.

    Example:
        >>> training_split(["train", "val"]), training_split(["val", "test"])
        ('train', 'val')
    """
    return "train" if "train" in splits else ranking_split(splits)


def shown_splits(splits: Collection[str]) -> tuple[str, ...]:
    """The splits that tables and figures show: the one that ranks, and test if there is one.

    Example:
        >>> shown_splits(["train", "val", "test"]), shown_splits(["train"])
        (('val', 'test'), ('train',))
    """
    first = ranking_split(splits)
    return (first, *(["test"] if "test" in splits and first != "test" else []))
