"""A part of a run resumes with the answers of both sides; ours are asked again when our code changes."""

import attrs

from peers import compare
from peers.cases import read_lines, write_lines
from peers.compare import RECORDED, peer_of


def test_a_part_resumes_with_our_answers_until_our_code_changes(monkeypatch, tmp_path):
    peer, asked = peer_of("kafka_streams"), []
    lines = [line for line in read_lines(RECORDED / "kafka_streams.jsonl.gz") if not line["decided"]][:2]
    write_lines(tmp_path / f"kafka_streams-{peer.version}-1-0-2.jsonl.gz", lines)

    def here(case):
        asked.append(case)
        return next(line["there"] for line in lines if line["case"] == case)

    monkeypatch.setattr(compare, "ANSWERS", tmp_path)
    monkeypatch.setattr(compare, "peer_of", lambda _: attrs.evolve(peer, here=here))
    reports = [compare.part("kafka_streams", 1, code, 0, 2) for code in ("before", "before", "after")]
    assert [report.agreed for report in reports] == [2, 2, 2]
    assert len(asked) == 4
