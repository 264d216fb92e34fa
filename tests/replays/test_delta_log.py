"""Which files of a Delta table's log a batch took, and the deleted rows of a file, without Spark."""

import base64
import struct
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from beamish.spark.replay.deletion_vectors import _PYTHONS, _Z85, deleted_rows, path_of
from beamish.spark.replay.delta import _files, _first
from beamish.spark.replay.delta_log import DeltaLog, GoneError, Position, RewrittenError, first_position
from beamish.spark.replay.read_call import ReadCall
from tests.replays.delta_in_memory import COMMITS, META, TABLE, Stored, add, at, commit, remove


def paths(log, start, end, *, skips=False):
    return [file["path"] for file in log.files(start, end, skips=skips)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (at(0), at(1), "c b a"),  # in the order of the commit
        (at(0, 1), at(2, 0), "a d"),
        (at(2, 0), at(2, 1), "e"),
        (at(1), at(2), ""),
        (at(0, snapshot=True), at(0, 1, snapshot=True), "b a"),  # by time and path
        (at(0, 1, snapshot=True), at(2, 0), "c d"),
        (at(2, snapshot=True), at(4), "c e ab d d2 d3"),
        (at(2, -20), at(2, -19), ""),  # a change of columns, as a log of schemas has it
        (at(3, 0), at(6), "d3 f"),
    ],
)
def test_files_between_two_offsets(start, end, expected):
    assert " ".join(paths(DeltaLog(Stored(COMMITS)), start, end)) == expected


def test_commits_that_rewrite_rows_are_skipped_or_taken_as_the_source_did():
    log = DeltaLog(Stored(COMMITS))
    assert paths(log, at(3), at(6)) == ["d2", "d3", "f"]
    assert paths(log, at(3), at(6), skips=True) == ["f"]
    assert paths(log, at(4), at(6), skips=None) == ["f"]  # a commit that only deletes adds no row
    with pytest.raises(RewrittenError, match="version 3: UPDATE"):
        log.files(at(3), at(6), skips=None)


def test_a_snapshot_begins_with_the_last_checkpoint():
    kept = {version: of for version, of in COMMITS.items() if version > 1}
    log = DeltaLog(Stored(kept, {1: [*META, add("c", 3), add("ab", 9)], 4: [*META]}))
    assert paths(log, at(1, snapshot=True), at(2)) == ["c", "ab"]  # of its own version
    assert paths(log, at(2, snapshot=True), at(3)) == ["c", "e", "ab", "d"]
    with pytest.raises(GoneError):
        log.files(at(0, snapshot=True), at(1), skips=False)
    with pytest.raises(GoneError):
        log.files(at(1), at(3), skips=False)
    assert (log.last, log.snapshot(5, files=False).metadata) == (5, {"id": "t"})


def test_each_commit_is_read_once():
    stored = Stored(COMMITS)
    log = DeltaLog(stored)
    log.read(0, 9)
    paths(log, at(0), at(6))
    assert sorted(stored.read) == [commit(version) for version in range(6)]


def test_a_checkpoint_of_several_parts_counts_when_it_is_complete():
    names = [f"{7:020}.checkpoint.{part:010}.{2:010}.parquet" for part in (1, 2)]
    v2 = f"{9:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"

    def log(*given):
        return DeltaLog(SimpleNamespace(names=lambda: [*given, commit(8), f"{8:020}.crc", "_last_checkpoint"]))

    assert log(*names, v2)._names["checkpoint"] == {7: names, 9: [v2]}
    assert (log(names[0])._names["checkpoint"], log(names[0]).last) == ({}, 8)


def test_a_file_with_another_deletion_vector_is_another_file():
    def vector(text):
        return {"storageType": "u", "pathOrInlineDv": text, "offset": 1}

    commits = {
        0: [*META, add("a")],
        1: [remove("a"), add("a", deletionVector=vector("x"))],
        2: [add("a", deletionVector=vector("y")), remove("a", deletionVector=vector("x"))],
    }
    (file,) = DeltaLog(Stored(commits)).snapshot(2).files
    assert file["deletionVector"]["pathOrInlineDv"] == "y"


def test_the_change_data_feed_is_of_its_own_files_or_of_added_and_removed_ones():
    commits = {0: [*META, add("a"), add("b")], 1: [remove("a"), add("c"), {"cdc": {"path": "x", "dataChange": False}}]}
    found = DeltaLog(Stored(commits)).changes(at(0, 0), at(1, 0))
    kinds = [(one.version, [(kind, of["path"]) for kind, of in one.files], one.is_whole) for one in found]
    assert kinds == [(0, [("add", "b")], False), (1, [("cdc", "x")], True)]


def test_where_a_query_began():
    assert first_position(at(4, 2, snapshot=True), None) == at(4, snapshot=True)
    assert first_position(at(5), None) == at(4, snapshot=True)
    assert _first(ReadCall("delta", {"startingVersion": "2"}, None), at(5)) == at(2)
    for options in ({"startingVersion": "latest"}, {"startingTimestamp": "2026-01-01"}):
        with pytest.raises(GoneError):
            _first(ReadCall("delta", options, None), at(5))


def test_offsets_are_those_of_delta():
    text = '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":3,"index":-1,"isStartingVersion":true}'
    assert Position.read(text) == at(3, snapshot=True)


def test_options_of_the_stream_choose_files():
    def given(**options):
        return [file["path"] for file in _files(TABLE, ReadCall("delta", options, None), at(2), at(6))]

    assert given(ignoreChanges="true", excludeRegex="^e") == ["d", "d2", "d3", "f"]
    assert given(skipChangeCommits="true") == ["d", "e", "f"]


def containers(*parts, offsets):
    """A Roaring bitmap of 32 bits: its containers, each the high half and the low ones; a range is a run."""
    runs = [isinstance(low, range) for _, low in parts]
    heads = b"".join(struct.pack("<HH", high, len(low) - 1) for high, low in parts)
    bodies = []
    for _, low in parts:
        if isinstance(low, range):
            bodies.append(struct.pack("<HHH", 1, low[0], len(low) - 1))
        elif len(low) <= 4096:
            bodies.append(struct.pack(f"<{len(low)}H", *low))
        else:
            bits = np.zeros(65536, np.uint8)
            bits[low] = 1
            bodies.append(np.packbits(bits, bitorder="little").tobytes())
    if any(runs):
        flags = np.packbits(np.array(runs, np.uint8), bitorder="little").tobytes()
        start = struct.pack("<I", 12347 | (len(parts) - 1) << 16) + flags
    else:
        start = struct.pack("<II", 12346, len(parts))
    return start + heads + (b"\0" * 4 * len(parts) if offsets else b"") + b"".join(bodies)


def array_of(*bitmaps):
    data = struct.pack("<iq", 1681511377, len(bitmaps))
    return data + b"".join(struct.pack("<i", high) + bitmap for high, bitmap in bitmaps)


MANY = list(range(0, 10000, 2))
ARRAYS = {
    "lists": (array_of((0, containers((0, [1, 5]), (2, [0]), offsets=True))), [1, 5, 131072]),
    "runs": (array_of((0, containers((0, range(3, 6)), (1, [7]), offsets=False))), [3, 4, 5, 65543]),
    "a bitmap": (array_of((0, containers((0, MANY), offsets=True))), MANY),
    "beyond 32 bits": (
        array_of((0, containers((0, [1]), offsets=True)), (1, containers((0, [2]), offsets=True))),
        [1, 2**32 + 2],
    ),
    "runs with offsets": (
        array_of((0, containers(*((high, range(2)) for high in range(4)), offsets=True))),
        [0, 1, 65536, 65537, 131072, 131073, 196608, 196609],
    ),
    "none": (array_of(), []),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_deleted_rows_of_a_file(name):
    data, rows = ARRAYS[name]
    stored = b"\1" + struct.pack(">i", len(data)) + data + b"\0\0\0\0"
    assert list(deleted_rows({"storageType": "u", "offset": 1}, stored)) == rows
    padded = data + b"\0" * (-len(data) % 4)
    inline = base64.b85encode(padded).translate(bytes.maketrans(_PYTHONS, _Z85)).decode()
    assert list(deleted_rows({"storageType": "i", "pathOrInlineDv": inline}, None)) == rows


@pytest.mark.parametrize("data", [struct.pack("<iq", 5, 1), array_of((0, struct.pack("<I", 9)))])
def test_a_deletion_vector_of_an_unknown_format_is_rejected(data):
    with pytest.raises(ValueError, match="deletion vector"):
        deleted_rows({"storageType": "u", "offset": 0}, struct.pack(">i", len(data)) + data)


def test_the_file_of_a_deletion_vector():
    # the example of Delta's protocol
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    assert (
        path_of(vector, "/lake/t") == f"/lake/t/ab/deletion_vector_{UUID('d2c639aa-8816-431a-aaf6-d3fe2512ff61')}.bin"
    )
    assert path_of({"storageType": "p", "pathOrInlineDv": "s3a://b/x.bin"}, "/lake/t") == "s3a://b/x.bin"
    assert path_of({"storageType": "i", "pathOrInlineDv": "x"}, "/lake/t") is None
