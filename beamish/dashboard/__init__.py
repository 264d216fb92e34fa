"""``python -m beamish watch``: a page beside a query, read only, from its checkpoint (docs/watch.md).

In reading order: ``html`` (markup from text), ``pictures`` (charts as SVG), ``source`` (what is read),
``metrics`` (the metrics of ``bm.Listener``), ``watched`` (one checkpoint, read again after each batch), ``page`` (facts as markup), ``server`` (paths, and which requests are refused), ``command``.

Invariants: nothing here writes; facts are those of ``checkpoint/overview.py``; values are text wherever they are shown, and hidden
under ``BEAMISH_HIDE_VALUES``; the page needs no other host. Tests: ``pytest tests/dashboard``.
"""
