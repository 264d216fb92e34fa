"""How many different users were seen in a window: the accumulator is the set of them."""

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class DifferentUsers(Accumulation):
    column: str
    result_type = "bigint"

    def create(self):
        return frozenset()

    def add(self, accumulator, user):
        return accumulator if user is None else accumulator | {user}

    def merge(self, a, b):
        return a | b

    def extract(self, accumulator):
        return len(accumulator)


accumulation = DifferentUsers("user")
values = ["ann", "bob", "ann", None, "cid", "bob"]
