"""Features of windows that an option asks for; ``plan/part.py`` is their interface.

``duplicates``: ``deduplicate``; ``retention``: ``retain``; that of ``forget_after``; ``pairs_once``: joins that emit each pair once;
``removals``: retractions of rows; ``row_errors``: ``on_error``; ``merged_panes``: ``retract_merged``; ``timestamps``: the timestamp combiner.
``event_time``, ``key_watermarks`` and ``row_windows`` are the progresses, of which a plan has one. ``planning`` makes the plan.

Invariants: a part imports no other, and no step imports a part; ``planning.PARTS`` is their order, which is that of the rules. A part that
is not asked for stores nothing. Tests: ``pytest tests/kinds/window/test_laws_parts.py tests/kinds/window``.
"""
