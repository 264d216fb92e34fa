"""Watermark policies."""

from __future__ import annotations

from hypothesis import strategies as st

import beamish as bm

bounded_out_of_orderness = st.builds(
    bm.BoundedOutOfOrderness,
    st.integers(0, 5),
    max_future=st.sampled_from([None, None, 3]),
    idle_timeout=st.sampled_from([None, None, None, 1, 4]),
)
processing_time_lag = st.builds(bm.ProcessingTimeLag, st.integers(0, 5))
punctuated = st.just(bm.Punctuated("mark"))
watermarks = st.one_of(bounded_out_of_orderness, bounded_out_of_orderness, processing_time_lag, punctuated)
