"""How many different users were seen in a window.

Wrong: the users seen are in a class attribute, shared by all windows and keys (and by what else runs in that worker), and not
in the checkpoint. A user who was counted in one window is not counted in the next, and after a restart everyone is new again.
"""

from typing import ClassVar

import attrs

from beamish.accumulations import Accumulation


@attrs.frozen
class DifferentUsers(Accumulation):
    column: str
    result_type = "bigint"
    seen: ClassVar[set[str]] = set()

    def create(self):
        return 0

    def add(self, accumulator, user):
        if user is None or user in self.seen:
            return accumulator
        self.seen.add(user)
        return accumulator + 1

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


accumulation = DifferentUsers("user")
values = ["ann", "bob", "ann", None, "cid", "bob"]
