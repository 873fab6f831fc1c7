"""Splits: the one that ranks models, and those that are shown. docs/guides/choosing.md states the same rule."""

from __future__ import annotations

from collections.abc import Collection

SPLITS = ("train", "val", "test")
"""The splits that losses and metrics may be measured on."""


SPLIT_WORDS = {"train": "training", "val": "validation", "test": "test"}
"""The word for each split in sentences and figures, on pages and terminals."""


def split_word(split: str) -> str:
    """The word for a split in sentences and figures; tables and options have its short name.

    Example:
        >>> split_word("val"), split_word("train"), split_word("test")
        ('validation', 'training', 'test')
    """
    return SPLIT_WORDS.get(split, split)


def ranking_split(splits: Collection[str]) -> str:
    """The split that chooses and ranks models: validation if there is one, else training.

    It is test only for a front that was given without any other split.

    Example:
        >>> ranking_split(["train", "val", "test"]), ranking_split(["train", "test"]), ranking_split(["test"])
        ('val', 'train', 'test')
    """
    return "val" if "val" in splits else "test" if set(splits) == {"test"} else "train"


def training_split(splits: Collection[str]) -> str:
    """The split of regions: training, because they are constraints of training; without it, the ranking split.

    Example:
        >>> training_split(["train", "val"]), training_split(["val", "test"])
        ('train', 'val')
    """
    return "train" if "train" in splits else ranking_split(splits)


def shown_splits(splits: Collection[str]) -> tuple[str, ...]:
    """The splits in tables and figures: the ranking split, and test if there is one.

    Example:
        >>> shown_splits(["train", "val", "test"]), shown_splits(["train"])
        (('val', 'test'), ('train',))
    """
    first = ranking_split(splits)
    return (first, *(["test"] if "test" in splits and first != "test" else []))
