"""Which stages run together, and why others do not."""

from __future__ import annotations

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.errors import OptionError, PipelineError
from beamish.fusion.groups import APART, FUSE, Fuse, described, fuse_of

SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("user", pa.string()), ("page", pa.string()), ("cost", pa.int64())]
)


SHRINKS = (
    "of the panes of stage 1: its keys ['user'] are not those of stage 1, ['user', 'page']; apply(..., shard_by=['user']) fuses them, in "
    "shards that are less even"
)


def first(*keys, window=None):
    return (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(5))
        .key_by(*keys)
        .window(window or bm.FixedWindows(10))
        .accumulate(n=Count(), most=Max("cost"))
    )


def later(*keys):
    return bm.Pipeline().key_by(*keys).window(bm.FixedWindows(60)).accumulate(n=Sum("n"))


NUMBERED = first("user", window=bm.CountWindows(3, over="stream")).timestamp_combiner(bm.TimestampCombiner.LATEST)


ONCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).deduplicate("user", within="1 hour")
KEYED_ONCE = ONCE.key_by("page")


def counted(*keys):
    return bm.Pipeline().key_by(*keys).window(bm.FixedWindows(60)).accumulate(n=Count())


def grouped(pipeline, how=FUSE, shards=4):
    flow = pipeline.flow.completed
    return how.grouped(flow.bind({source.name: SCHEMA for source in flow.sources}, shards=shards))


def numbers(flow):
    return sorted(map(sorted, flow.groups))


@pytest.mark.parametrize(
    ("pipeline", "groups"),
    [
        (first("user"), [[1]]),
        (first("user").then(later("user")), [[1, 2]]),
        (first("user").then(later("user")).then(later("user")), [[1, 2, 3]]),
        (first("user").then(later("user", "most")), [[1, 2]]),
        (first("user", "page").then(later("page", "user")), [[1, 2]]),
        (first("user", "page").then(later("user")), [[1], [2]]),
        (first("user").then(later("most")), [[1], [2]]),
        (first("user", "page").then(later("user")).then(later("user")), [[1], [2, 3]]),
        (NUMBERED.then(later("user")), [[1], [2]]),
        (ONCE.then(counted("page")), [[1], [2]]),
        (ONCE.then(counted("user", "page")), [[1, 2]]),
        (KEYED_ONCE.then(counted("page")), [[1, 2]]),
        (first().then(later()), [[1, 2]]),
        (first("user").then(later()), [[1], [2]]),
        (bm.merge(a=first("user"), b=first("user")).accumulate(n=Sum("n").of("a")), [[1, 2, 3]]),
        (bm.merge(a=first("user"), b=first("page")).accumulate(n=Sum("n").of("a")), [[1, 2, 3]]),
    ],
    ids=str,
)
def test_stages_run_together_whose_keys_are_alike_or_grow(pipeline, groups):
    assert numbers(grouped(pipeline)) == groups


def test_keys_in_another_order_decide_the_shard_in_the_order_of_the_first_stage():
    flow = grouped(first("user", "page").then(later("page", "user")))
    assert [link.by for link in flow.links] == [None, (1, 0)]


def test_a_source_beside_a_fused_stage_is_sharded_by_the_same_columns():
    both = bm.merge(
        a=first("user", "page"), b=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("user", "page")
    )
    pipeline = both.window(bm.FixedWindows(60)).accumulate(n=Count())
    flow = grouped(pipeline, Fuse(shard_by=("user",)))
    assert numbers(flow) == [[1, 2]]
    assert [relation.shards_by for relation in flow.operator.takes] == [(0,), (0,)]


@pytest.mark.parametrize("first_grows", [True, False])
def test_inputs_of_a_merge_that_are_sharded_by_other_columns_do_not_run_together(first_grows):
    grows = first("user").then(bm.Pipeline().key_by("user", "most").window(bm.FixedWindows(20)).accumulate(n=Sum("n")))
    alike = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("user", "cost")
    alike = alike.window(bm.FixedWindows(20)).accumulate(n=Count())
    inputs = {"a": grows, "b": alike} if first_grows else {"a": alike, "b": grows}
    assert numbers(grouped(bm.merge(**inputs).accumulate(of=Sum("n").of("a")))) == (
        [[1, 2, 4], [3]] if first_grows else [[1, 4], [2, 3]]
    )


def test_shard_by_fuses_stages_whose_keys_shrink():
    pipeline = first("user", "page").then(later("user"))
    flow = grouped(pipeline, Fuse(shard_by=("user",)))
    assert numbers(flow) == [[1, 2]]
    assert flow.operator.takes[0].shards_by == (0,)


def test_the_keys_of_shard_by_are_those_of_a_stage_over_a_source():
    with pytest.raises(
        PipelineError, match=r"shard_by=\['team'\]\): the stages over sources have keys \['user', 'page'\]"
    ):
        grouped(first("user", "page").then(later("user")), Fuse(shard_by=("team",)))


def test_no_stages_run_together_with_fuse_false():
    assert numbers(grouped(first("user").then(later("user")), APART)) == [[1], [2]]


def test_explain_knows_of_rows_in_one_shard_without_their_columns():
    lines = described(NUMBERED.then(later("user")).flow)
    assert lines[2] == [("shuffle", "of the panes of stage 1: all their rows are in one shard")]


def test_groups_are_as_in_a_checkpoint():
    chain = first("user").then(later("user")).then(later("user"))
    assert numbers(grouped(chain, Fuse(groups=[frozenset({1, 2}), frozenset({3})]))) == [[1, 2], [3]]


def test_explain_says_what_runs_together_and_what_would():
    lines = described(first("user", "page").then(later("user")).then(later("user")).flow)
    assert lines == {
        1: [],
        2: [
            ("fused", "with stage 3: one shuffle, one operator"),
            (
                "shuffle",
                SHRINKS,
            ),
        ],
        3: [("fused", "with stage 2: one shuffle, one operator")],
    }


def test_a_border_without_a_common_key_proposes_nothing():
    (border,) = grouped(first("user").then(later("most"))).borders[2]
    assert (border.stage, border.call) == (1, "")


@pytest.mark.parametrize(
    ("fuse", "shard_by", "said"),
    [
        ("yes", None, "apply(fuse='yes'): must be True or False"),
        (True, "user", "apply(shard_by='user'): must be a list of key columns, such as ['user']"),
        (True, [], "apply(shard_by=[]): must be a list of key columns, such as ['user']"),
        (True, [1], "apply(shard_by=[1]): must be a list of key columns, such as ['user']"),
        (
            False,
            ["user"],
            "apply(fuse=False, shard_by=['user']): only fused stages are sharded by it; leave out one of the two",
        ),
    ],
)
def test_wrong_options_are_refused(fuse, shard_by, said):
    with pytest.raises(OptionError) as raised:
        fuse_of("apply", fuse, shard_by)
    assert str(raised.value) == said
