from __future__ import annotations

from dataclasses import replace

from paretomtl.problems._census import files, parity
from paretomtl.problems._census.problem import from_splits
from paretomtl.problems.data_set import DataSet, Prepared, PrepareOptions


def _prepare(options: PrepareOptions) -> Prepared:
    census = files.prepare_census(options.source, options.cache, options.log)
    train, test = len(census.train_labels), len(census.test_labels)
    return Prepared(
        census.checksum(),
        files.PUBLISHED_CENSUS,
        "as published",
        f"{train:,} training and {test:,} test records, {len(census.feature_names)} features",
        {"train": train, "test": test},
    )


CENSUS_INCOME = DataSet(
    lambda options: files.census_file(options.cache, True), _prepare, from_splits, files.PUBLISHED_CENSUS
)
CENSUS_PARITY = replace(CENSUS_INCOME, from_splits=parity.from_splits)
