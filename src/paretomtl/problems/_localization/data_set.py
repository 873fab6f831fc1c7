from __future__ import annotations

from paretomtl.problems._localization.files import SIZE, localization_file, prepare_localization
from paretomtl.problems._localization.problem import from_splits
from paretomtl.problems.data_set import DataSet, Prepared, PrepareOptions


def _prepare(options: PrepareOptions) -> Prepared:
    height, width = options.size
    frames = prepare_localization(options.source, options.cache, options.size, options.log, options.skip_broken)
    return Prepared(
        frames.checksum(),
        None,
        "not published",
        f"{len(frames):,} frames, {height} by {width}",
        {"frames": len(frames)},
        "" if options.size == SIZE else f" --with 'size=({height}, {width})'",
    )


LOCALIZATION = DataSet(lambda options: localization_file(options.cache, options.size), _prepare, from_splits)
