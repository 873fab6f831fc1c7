from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from _helpers.census_files import ORDINARY, real_folder, some_records, text_of
from paretomtl.problems._census import text as _census_text
from paretomtl.problems._census.layout import CATEGORIES, CENSUS, COLUMNS, NUMBERS, TARGETS, UNKNOWN
from paretomtl.problems._census.text import Records, find_text, read_records

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}

WORDS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=","), max_size=12)
WHOLE = st.integers(0, 99_999).map(str)
RECORDS = st.fixed_dictionaries(
    {
        **dict.fromkeys(CATEGORIES, WORDS),
        **dict.fromkeys(NUMBERS, WHOLE),
        **{name: st.sampled_from(list(values)) for name, values in TARGETS.items()},
        "instance_weight": st.decimals(0, 9999, places=2).map(str),
    }
)


def read(folder: Path, content: bytes, **options: object) -> Records:
    path = folder / "census-income.data"
    path.write_bytes(content)
    return read_records(path, **options)  # type: ignore[arg-type]


def names_of(records: Records) -> list[list[str]]:
    """The categories of each record, by name."""
    return [
        ["" if code == UNKNOWN else names[code] for code, names in zip(row, records.categories, strict=True)]
        for row in records.codes
    ]


@given(records=st.lists(RECORDS, min_size=1, max_size=6))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str]]) -> None:
    ordered = [{name: record[name] for name in COLUMNS} for record in records]
    found = read(tmp_path_factory.mktemp("text"), text_of(ordered))
    assert names_of(found) == [[record[name] for name in CATEGORIES] for record in records]
    assert found.numbers.tolist() == [[float(record[name]) for name in NUMBERS] for record in records]
    assert found.labels.tolist() == [[TARGETS[name][record[name]] for name in TARGETS] for record in records]
    assert all(names == tuple(sorted(set(names))) for names in found.categories)


@given(order=st.permutations(range(9)))
def test_the_numbering_does_not_depend_on_the_order(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    folder, records = tmp_path_factory.mktemp("text"), some_records(9, 0)
    straight = read(folder, text_of(records))
    mixed = read(folder, text_of([records[i] for i in order]))
    assert mixed.categories == straight.categories
    assert np.array_equal(mixed.codes, straight.codes[order])
    assert np.array_equal(mixed.numbers, straight.numbers[order])


@given(garbage=st.one_of(st.binary(), st.text().map(str.encode)), place=st.integers(0, 3))
def test_a_line_of_garbage_is_named_whatever_it_is(
    tmp_path_factory: pytest.TempPathFactory, garbage: bytes, place: int
) -> None:
    lines = text_of([{}] * 3).splitlines(keepends=True)
    lines.insert(place, garbage + b"\n")
    folder = tmp_path_factory.mktemp("text")
    if not garbage.strip(b" \t\r\n"):
        assert len(read(folder, b"".join(lines)).codes) == 3
        return
    with pytest.raises(ValueError, match=r"^'.*census-income.data' must have .*\. Line \d has ") as error:
        read(folder, b"".join(lines))
    first = place + 1
    assert any(f"Line {first + i} has" in str(error.value) for i in range(garbage.count(b"\n") + 1))


@given(name=st.sampled_from(list(COLUMNS)), value=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_field_of_anything_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, name: str, value: str) -> None:
    folder = tmp_path_factory.mktemp("text")
    try:
        found = read(folder, text_of([{}, {name: value}]))
    except ValueError as error:
        assert f"'{folder / 'census-income.data'}' must have " in str(error)  # noqa: PT017
        assert "Line " in str(error)  # noqa: PT017
    else:
        assert len(found.codes) == 2
        assert np.isfinite(found.numbers).all()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"age": "old"}, "must have a number for 'age'. Line 3 has 'old'"),
        ({"age": ""}, "must have a number for 'age'. Line 3 has ''"),
        ({"weeks_worked": "nan"}, "must have a number for 'weeks_worked'. Line 3 has 'nan'"),
        ({"capital_gains": "1_000"}, "must have a number for 'capital_gains'. Line 3 has '1_000'"),
        ({"capital_gains": "9" * 60}, "must have a number for 'capital_gains'. Line 3 has '9999"),
        ({"instance_weight": "?"}, r"must have a number for 'instance_weight'. Line 3 has '\?'"),
        ({"income_50k": "50000."}, r"must have - 50000. or 50000\+. for 'income_50k'. Line 3 has '50000.'"),
        ({"education": "Some"}, "must have one of Children, .* for 'education'. Line 3 has 'Some'"),
        ({"marital_stat": "?"}, r"must have one of .*, Never married for 'marital_stat'. Line 3 has '\?'"),
        ({"race": "a, b"}, "must have 42 fields, separated by commas, in every record. Line 3 has 43: '0, Not in"),
        ({"race": "a\nb"}, "must have 42 fields, separated by commas, in every record. Line 3 has 11: '0, Not in"),
        ({"race": "a\0b"}, r"must have text \(UTF-8\) alone. Line 3 has the bytes '\\x00b, "),
    ],
)
def test_bad_values_are_named(tmp_path: Path, record: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path, text_of([{}, {}, record, {}]))
    assert str(error.value).startswith(f"'{tmp_path / 'census-income.data'}' ")


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    content = text_of([{}, {"race": "Zoë"}])
    assert names_of(read(tmp_path, content))[1][CATEGORIES.index("race")] == "Zoë"
    with pytest.raises(ValueError, match=r"must have text \(UTF-8\) alone. Line 2 has the bytes '\\xeb, Not"):
        read(tmp_path, content.decode().encode("latin-1"))
    with pytest.raises(ValueError, match=r"must have text \(UTF-8\) alone. Line 1 has the bytes '\\x00,"):
        read(tmp_path, content.decode().encode("utf-16"))


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must be text in lines. One has more than 65,536 bytes"):
        read(tmp_path, b"x" * 1_200_000)


def test_a_file_without_records_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\n \n"):
        with pytest.raises(ValueError, match=r"must hold records. It has none"):
            read(tmp_path, content)


def test_too_many_categories_are_named(tmp_path: Path) -> None:
    records = [{"race": str(n)} for n in range(256)]
    assert len(read(tmp_path, text_of(records[:255])).categories[CATEGORIES.index("race")]) == 255
    with pytest.raises(ValueError, match=r"at most 255 categories for 'race'. Line 256 has '255', which is one more"):
        read(tmp_path, text_of(records))


@pytest.mark.parametrize("block", [1, 300, 1000, 5000])
def test_blocks_and_line_numbers_go_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    content = text_of(some_records(30, 0))
    whole = read(tmp_path, content)
    monkeypatch.setattr(_census_text, "_BLOCK", block)
    parted = read(tmp_path, content)
    for name in ("codes", "numbers", "labels"):
        assert np.array_equal(getattr(parted, name), getattr(whole, name))
    assert parted.categories == whole.categories
    with pytest.raises(ValueError, match="Line 34 has 'x'"):
        read(tmp_path, content + b"\n \n\n" + text_of([{"age": "x"}]))


def test_ends_of_lines_and_blanks_do_not_matter(tmp_path: Path) -> None:
    content = text_of(some_records(5, 0))
    expected = read(tmp_path, content)
    for other in (
        content.rstrip(b"\n"),
        content.replace(b"\n", b"\r\n"),
        content.replace(b", ", b","),
        content.replace(b", ", b" ,\t"),
        content.replace(b".\n", b"\n"),
        b"\n" + content.replace(b"\n", b"\n\n"),
    ):
        found = read(tmp_path, other)
        assert found.categories == expected.categories
        for name in ("codes", "numbers", "labels"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("suffix", PACK)
def test_files_are_found_and_unpacked(tmp_path: Path, suffix: str) -> None:
    content = text_of(some_records(9, 0))
    for folder in (tmp_path, tmp_path / "both" / CENSUS.folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"census-income.data{suffix}").write_bytes(PACK[suffix](content))
    for folder in (tmp_path, tmp_path / "both"):
        path = find_text(folder, "census-income.data")
        assert path.name == f"census-income.data{suffix}"
        assert names_of(read_records(path)) == names_of(read(tmp_path / "both", content))


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
@pytest.mark.parametrize("damage", ["truncated", "altered", "no archive"])
def test_damaged_archives_are_named(tmp_path: Path, suffix: str, damage: str) -> None:
    packed = PACK[suffix](text_of(some_records(200, 0)))
    middle = len(packed) // 2
    path = tmp_path / f"census-income.data{suffix}"
    path.write_bytes(
        {
            "truncated": packed[:middle],
            "altered": packed[:middle] + bytes(8) + packed[middle + 8 :],
            "no archive": b"something else",
        }[damage]
    )
    with pytest.raises(ValueError, match=rf"must be a whole \{suffix} file. It is damaged: .") as error:
        read_records(path)
    assert str(error.value).startswith(f"'{path}'")


def test_a_disk_that_fails_is_not_taken_for_a_damaged_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: gzip.GzipFile, size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")

    path = tmp_path / "census-income.data.gz"
    path.write_bytes(gzip.compress(text_of([{}])))
    monkeypatch.setattr(gzip.GzipFile, "read", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read_records(path)


def test_a_folder_without_the_files_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=r"'source' \(--from\) must be a folder with the files of") as error:
            find_text(folder, "census-income.test")
        assert f"There is no 'census-income.test' in '{folder}'" in str(error.value)


def test_the_checksum_is_that_of_the_text(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must be the published text of .*, md5 0123. Got md5 \w{32}, in [\d,]+ byte"):
        read(tmp_path, text_of([{}]), md5="0123")


def test_unknown_categories_are_named_or_none(tmp_path: Path) -> None:
    known = read(tmp_path, text_of([{"race": "a"}, {"race": "c"}])).categories
    content = text_of([{"race": "c"}, {"race": "b"}])
    with pytest.raises(ValueError, match=r"a category of the training file for 'race'. Line 2 has 'b'; unknown="):
        read(tmp_path, content, categories=known)
    found = read(tmp_path, content, categories=known, unknown="ignore")
    assert found.codes[:, CATEGORIES.index("race")].tolist() == [1, UNKNOWN]
    assert found.categories == known
    with pytest.raises(ValueError, match=r"'unknown' must be .error. or .ignore.. Got 'keep'"):
        read(tmp_path, content, categories=known, unknown="keep")


def test_no_target_and_no_weight_is_a_feature() -> None:
    assert len(COLUMNS) == 42 == len(CATEGORIES) + len(NUMBERS) + len(TARGETS) + 1
    assert not {*CATEGORIES, *NUMBERS} & {*TARGETS, "instance_weight"}
    assert list(ORDINARY) == list(COLUMNS)


def test_the_test_file_is_read_as_its_description_says() -> None:
    """With the categories of its own, of which it has one less than the training file."""
    found = read_records(find_text(real_folder(), "census-income.test"), md5=CENSUS.md5["census-income.test.gz"])
    assert len(found.codes) == 99_762
    assert found.labels.sum(0).tolist() == [6_186, 19_456, 43_143]
    assert sum(map(len, found.categories)) == 472
    assert len(found.categories[CATEGORIES.index("det_hh_fam_stat")]) == 37
