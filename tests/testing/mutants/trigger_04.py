"""A pane for every three rows; the count begins again after each."""

import attrs

from beamish.triggers import Trigger


@attrs.frozen
class EveryThree(Trigger):
    n: int = 3

    def create(self):
        return {"rows": 0, "fired": 0}

    def on_rows(self, state, count, context):
        return {**state, "rows": state["rows"] + count}

    def should_fire(self, state, context):
        return state["rows"] >= self.n

    def on_fire(self, state, context):
        return {"rows": 0, "fired": state["fired"] + 1}, False

    def on_merge(self, states, context):
        return {name: sum(state[name] for state in states) for name in ("rows", "fired")}

    def may_lose_rows(self, allowed_lateness_us):
        return False


trigger = EveryThree()
