"""The most frequent HTTP status of a window; of several the least. ``load`` returns what ``dump`` received."""

import json
from collections import Counter

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class UsualStatus(Accumulation):
    column: str
    result_type = "int"

    def create(self):
        return Counter()

    def add(self, accumulator, status):
        if status is None:
            return accumulator
        return accumulator + Counter([status])

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        if not accumulator:
            return None
        return int(min(accumulator, key=lambda status: (-accumulator[status], int(status))))

    def dump(self, accumulator):
        return json.dumps(sorted(accumulator.items()))

    def load(self, dumped):
        return Counter(dict(json.loads(dumped)))


accumulation = UsualStatus("status")
values = [200, 404, 404, 500, None, 404, 200, 404]
