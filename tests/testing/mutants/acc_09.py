"""The most frequent HTTP status of a window; of several the least.

Wrong: the state does not survive its round trip. JSON has text for keys, so a count of 200 comes back as one of "200", and the next
200 starts a count of its own. (``int`` in ``extract`` was added when the first error appeared, and hides it.)
"""

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
        return json.dumps(accumulator)

    def load(self, dumped):
        return Counter(json.loads(dumped))


accumulation = UsualStatus("status")
values = [200, 404, 404, 500, None, 404, 200, 404]
