"""The length of the longest comment in a window; null without one. Rows without a comment are skipped."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class LongestComment(Accumulation):
    column: str
    result_type = "bigint"

    def create(self):
        return None

    def add(self, accumulator, comment):
        return accumulator if comment is None else self.merge(accumulator, len(comment))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return max(a, b)

    def extract(self, accumulator):
        return accumulator


accumulation = LongestComment("comment")
values = ["fine", "", "too slow at noon", "ok", None]
