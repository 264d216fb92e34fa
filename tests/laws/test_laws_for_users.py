"""The laws that users check (beamish.testing.laws), of the pipelines and scripts that are drawn here."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish.accumulations import Count, Max, Min, Sum
from beamish.testing import laws
from beamish.testing.laws import variants
from tests.kinds.suppress.strategy import suppressed
from tests.own.accumulations import Balance, Distinct, Range
from tests.strategies.accumulations import exact
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.strategies.windows import windows_by_overlap

added_up = st.sampled_from(
    [Count(), Sum("score"), Min("name"), Max("cost"), Min("ratio"), Range("score"), Balance("score"), Distinct("name")]
)
ledgers = pipelines(mode=st.just(retracting), window=windows_by_overlap)
batches = pipelines(window=windows_by_overlap, accumulation=exact, watermark=bounded_out_of_orderness)
LAWS = {
    laws.restart_is_irrelevant: (pipelines(), lambda _: None),
    laws.live_panes_equal_batch: (batches, variants.why_not_in_one_batch),
    laws.arrival_order_is_irrelevant: (batches, variants.why_not_in_one_batch),
    laws.batches_are_irrelevant: (batches, variants.why_not_in_one_batch),
    laws.retractions_repeat_the_live_pane: (st.one_of(ledgers, suppressed(ledgers)), variants.why_no_retractions),
    laws.changes_fold_to_live_panes: (st.one_of(ledgers, suppressed(ledgers)), variants.why_not_folded),
    laws.no_row_is_lost: (pipelines(watermark=bounded_out_of_orderness), variants.why_not_counted),
    laws.discarding_panes_add_up: (pipelines(accumulation=added_up), variants.why_no_parts),
    laws.panes_are_numbered: (pipelines(), variants.why_not_numbered),
}


@pytest.mark.of_law(
    "law-change",
    "law-discarding-adds-up",
    "law-ledger",
    "law-live-panes-equal-batch",
    "law-nothing-is-lost",
    "law-order-and-shards",
    "law-pane-numbers",
    "law-state-round-trip",
)
@pytest.mark.parametrize("law", LAWS)
@given(data=st.data())
def test_laws_for_users_hold(law, data):
    drawn, why_not = LAWS[law]
    pipeline = data.draw(drawn)
    assume(why_not(pipeline) is None)
    law(pipeline, data.draw(scripts(pipeline)))
