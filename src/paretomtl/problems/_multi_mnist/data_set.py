from __future__ import annotations

import functools

from paretomtl.problems._multi_mnist.files import PUBLISHED, canvases_file, prepare_canvases
from paretomtl.problems._multi_mnist.problem import from_splits
from paretomtl.problems.data_set import DataSet, Prepared, PrepareOptions


def _prepare(name: str, options: PrepareOptions) -> Prepared:
    canvases = prepare_canvases(name, source=options.source, cache=options.cache, seed=options.seed, log=options.log)
    train, test, seed = len(canvases.train_labels), len(canvases.test_labels), canvases.seed
    return Prepared(
        canvases.checksum(),
        PUBLISHED[name] if seed == 0 else None,
        "as published" if seed == 0 else "published for seed 0 only",
        f"{canvases.origin} with seed {seed}: {train:,} training and {test:,} test canvases, 36 by 36",
        {"seed": seed, "train": train, "test": test},
        canvases=canvases,
    )


def _canvases(name: str) -> DataSet:
    return DataSet(
        lambda options: canvases_file(name, options.cache, options.seed),
        functools.partial(_prepare, name),
        functools.partial(from_splits, name),
        PUBLISHED[name],
    )


MULTI_MNIST = _canvases("multi-mnist")
MULTI_FASHION = _canvases("multi-fashion")
MULTI_FASHION_MNIST = _canvases("multi-fashion-mnist")
MULTI_MNIST_3 = _canvases("multi-mnist-3")
MULTI_FASHION_3 = _canvases("multi-fashion-3")
