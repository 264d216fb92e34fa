"""Search for counterexamples to the laws for BEAMISH_DEEP_SECONDS in all: ``make test-deep``.

What runs on Spark has its share in tests/spark/test_laws_on_spark.py.
"""

from __future__ import annotations

import pytest

from tests.budget import SECONDS, SPARK_SECONDS, search
from tests.laws.test_chain import (
    test_after_the_end_of_time_the_live_panes_of_a_chain_are_those_of_two_batches as live_panes_of_chains_are_those_of_a_batch,
)
from tests.laws.test_chain import test_engine_and_twin_give_the_same_panes_of_a_chain as twin_of_chains
from tests.laws.test_chain import (
    test_shards_packing_and_stored_bytes_change_nothing_in_a_chain as shards_of_chains,
)
from tests.laws.test_discarding_adds_up import (
    test_discarding_panes_add_up_to_the_accumulating_pane as discarding_adds_up,
)
from tests.laws.test_discarding_adds_up import (
    test_discarding_panes_of_a_session_and_of_all_merged_into_it_add_up as discarding_sessions_add_up,
)
from tests.laws.test_ledger import (
    test_after_the_end_of_time_the_live_panes_are_those_of_a_batch as live_panes_are_those_of_a_batch,
)
from tests.laws.test_ledger import (
    test_every_retraction_strikes_out_a_live_pane_and_a_window_has_at_most_one as the_ledger,
)
from tests.laws.test_merges import test_engine_and_twin_give_the_same_panes_of_a_merge as twin_of_merges
from tests.laws.test_merges import (
    test_every_retracted_row_strikes_out_a_live_one_and_a_window_has_one_live_pane as ledger_of_merges,
)
from tests.laws.test_merges import (
    test_in_the_end_the_live_rows_of_a_join_are_those_of_a_batch as live_rows_are_those_of_a_batch,
)
from tests.laws.test_merges import (
    test_shards_packing_and_stored_state_change_nothing_in_a_merge as shards_of_merges,
)
from tests.laws.test_nothing_is_lost import (
    test_every_row_is_in_one_discarding_pane_of_each_of_its_windows_or_dropped as nothing_is_lost,
)
from tests.laws.test_pane_numbers import (
    test_panes_of_a_window_are_numbered_and_read_early_then_on_time_then_late as pane_numbers,
)
from tests.laws.test_twin import test_engine_and_twin_give_the_same_panes as twin
from tests.laws.test_twin import test_engine_and_twin_give_the_same_panes_of_long_scripts as twin_of_long_scripts
from tests.laws.test_twin import test_engine_and_twin_give_the_same_panes_of_sessions as twin_of_sessions
from tests.laws.test_twin import (
    test_engine_and_twin_give_the_same_panes_of_windows_that_absorb_others as twin_of_absorbing_windows,
)
from tests.laws.test_twin import test_the_order_of_rows_in_a_bundle_changes_nothing as row_order
from tests.laws.test_windowings import (
    test_several_windowings_are_each_what_a_pipeline_of_its_own_gives as windowings,
)

LAWS = {
    "twin": twin,
    "twin of long scripts": twin_of_long_scripts,
    "twin of sessions": twin_of_sessions,
    "twin of absorbing windows": twin_of_absorbing_windows,
    "twin of chains": twin_of_chains,
    "twin of merges": twin_of_merges,
    "shards of chains": shards_of_chains,
    "shards of merges": shards_of_merges,
    "windowings": windowings,
    "row order": row_order,
    "ledger": the_ledger,
    "ledger of merges": ledger_of_merges,
    "live panes equal batch": live_panes_are_those_of_a_batch,
    "live panes of chains equal batch": live_panes_of_chains_are_those_of_a_batch,
    "live rows of joins equal batch": live_rows_are_those_of_a_batch,
    "nothing is lost": nothing_is_lost,
    "discarding adds up": discarding_adds_up,
    "discarding sessions add up": discarding_sessions_add_up,
    "pane numbers": pane_numbers,
}


@pytest.mark.deep
@pytest.mark.parametrize("law", LAWS)
def test_no_counterexample_is_found(law):
    search(LAWS[law].hypothesis.inner_test, (SECONDS - SPARK_SECONDS) / len(LAWS))
