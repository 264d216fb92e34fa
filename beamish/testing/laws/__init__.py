"""Check pipelines and their parts over drawn scripts: ``from beamish.testing import laws``."""

from beamish.packages import check_hypothesis

check_hypothesis(__name__)

from beamish.testing.laws.accumulations import (  # noqa: E402 - Hypothesis is checked first
    arguments_are_unchanged,
    check_accumulation,
    merge_agrees_with_add,
    merge_is_associative,
    merge_is_commutative,
    new_accumulator_is_identity,
    order_of_rows_is_irrelevant,
    retract_undoes_add,
    same_rows_have_same_value,
    state_restores_accumulator,
)
from beamish.testing.laws.report import LawError  # noqa: E402
from beamish.testing.laws.seen import Seen, VacuousError  # noqa: E402
from beamish.testing.laws.triggers import (  # noqa: E402
    check_trigger,
    finishes_as_declared,
    fires_early_as_declared,
    firing_rearms,
    firings_are_announced,
    should_fire_changes_nothing,
    state_merged_alone_is_unchanged,
    state_restores_window,
    states_merge_in_any_order,
    states_merge_in_steps_as_at_once,
    timers_run_out,
    windows_do_not_share_state,
)
from beamish.testing.laws.watermarks import (  # noqa: E402
    check_watermark,
    clock_moves_idle_source,
    rows_are_in_time,
    watermark_never_goes_back,
)
from beamish.testing.laws.windows import (  # noqa: E402
    assignment_depends_on_the_row,
    check_windows,
    merge_covers_windows_once,
    overlaps_as_declared,
    rows_are_assigned_alone_as_together,
    slices_share_windows,
    windows_end_after_their_rows,
    windows_merge_in_steps_as_at_once,
)

__all__ = [
    "LawError",
    "Seen",
    "VacuousError",
    "arguments_are_unchanged",
    "assignment_depends_on_the_row",
    "check_accumulation",
    "check_trigger",
    "check_watermark",
    "check_windows",
    "clock_moves_idle_source",
    "finishes_as_declared",
    "fires_early_as_declared",
    "firing_rearms",
    "firings_are_announced",
    "merge_agrees_with_add",
    "merge_covers_windows_once",
    "merge_is_associative",
    "merge_is_commutative",
    "new_accumulator_is_identity",
    "order_of_rows_is_irrelevant",
    "overlaps_as_declared",
    "retract_undoes_add",
    "rows_are_assigned_alone_as_together",
    "rows_are_in_time",
    "same_rows_have_same_value",
    "should_fire_changes_nothing",
    "slices_share_windows",
    "state_merged_alone_is_unchanged",
    "state_restores_accumulator",
    "state_restores_window",
    "states_merge_in_any_order",
    "states_merge_in_steps_as_at_once",
    "timers_run_out",
    "watermark_never_goes_back",
    "windows_do_not_share_state",
    "windows_end_after_their_rows",
    "windows_merge_in_steps_as_at_once",
]
