from __future__ import annotations

from paretomtl.problems._utkface.files import SIDE, prepare_utkface, utkface_file
from paretomtl.problems._utkface.problem import from_splits
from paretomtl.problems.data_set import DataSet, Prepared, PrepareOptions


def _prepare(options: PrepareOptions) -> Prepared:
    side = options.side
    faces = prepare_utkface(options.source, options.cache, side, options.skip_broken, options.log)
    return Prepared(
        faces.checksum(),
        None,
        "not published",
        f"{len(faces):,} faces, {side} by {side}",
        {"faces": len(faces)},
        "" if side == SIDE else f" --with side={side}",
    )


UTKFACE = DataSet(lambda options: utkface_file(options.cache, options.side), _prepare, from_splits)
