"""Numbered sheets of tiles with a table that says what each tile is: all of them, each once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from paretomtl.problems._data.images import Pixels, Size, read_sheet


def read_tiles(
    folder: Path, pattern: str, grid: Size, tile: Size, rows: Mapping[tuple[int, int], int], table: Path
) -> tuple[Pixels, list[int]]:
    """All tiles that have a row, sheet by sheet, and the row of each.

    Every sheet must be full, but for the last, which may end early; no tile may lack its row, no row its tile, and no
    sheet its rows.

    Args:
        folder: where the sheets are.
        pattern: their names, ``sheet_`` and a place for the number, which counts from 0.
        grid: rows and columns of a sheet.
        tile: height and width of a tile.
        rows: the row of each (sheet, tile).
        table: the file that they are from, for messages.
    """
    count = grid[0] * grid[1]
    last = max(sheet for sheet, _ in rows)
    size = 1 + max(tile for sheet, tile in rows if sheet == last)
    wanted = [(sheet, number) for sheet in range(last + 1) for number in range(count if sheet < last else size)]
    missing = [f"tile {number} of sheet {sheet}" for sheet, number in wanted if (sheet, number) not in rows]
    if missing:
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        raise ValueError(f"'{table}' must have a row for every tile. It lacks {', '.join(missing[:5])}{more}.")
    sheets = [folder / pattern.format(sheet) for sheet in range(last + 1)]
    for path in sheets:
        if not path.is_file():
            raise FileNotFoundError(f"'{table}' must only name tiles of sheets that are there. There is no '{path}'.")
    for path in sorted(set(folder.glob("sheet_*.jpg")) - set(sheets)):
        raise ValueError(f"'{table}' must have a row for every tile. It has none for those of '{path}'.")
    tiles = np.concatenate([read_sheet(path, grid, tile) for path in sheets])
    return tiles[: len(wanted)], [rows[place] for place in wanted]
