"""A watched checkpoint: read again after each committed batch, however many readers the page has."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence

import attrs

from beamish.checkpoint.overview import Listing, Overview, batches_of, overview
from beamish.checkpoint.question import Question
from beamish.dashboard.metrics import Metrics
from beamish.dashboard.source import Source
from beamish.errors import BeamishError, describe_foreign

_SAMPLES = 500
"""Maximum number of samples."""
_LINKS = 5_000
"""Maximum number of rows whose links are known."""


@attrs.frozen
class Sample:
    """Some facts of a batch, as the page saw it.

    Attributes:
        batch: its number.
        clock_us: when it began.
        windows, size, rows_out, dropped: totals over the stages; ``rows_out`` None: unknown.
        watermarks_us: of each stage and input, by (stage, input), input None: of the stage; None: none yet.
    """

    batch: int
    clock_us: int
    windows: int
    size: int
    rows_out: int | None
    dropped: int
    watermarks_us: Mapping[tuple[int, str | None], int | None]

    @classmethod
    def of(cls, facts: Overview) -> Sample:
        """From an overview."""
        out = [stage.rows_out for stage in facts.stages]
        watermarks: dict[tuple[int, str | None], int | None] = {}
        for stage in facts.stages:
            watermarks |= {(stage.number, one.name): one.watermark_us for one in stage.inputs if one.name is not None}
            watermarks[stage.number, None] = stage.watermark_us
        return cls(
            facts.batch,
            facts.clock_us,
            sum(stage.windows for stage in facts.stages),
            sum(stage.size for stage in facts.stages),
            None if None in out else sum(one or 0 for one in out),
            sum(sum(stage.dropped.values()) for stage in facts.stages),
            watermarks,
        )


@attrs.frozen(eq=False)
class View:
    """The known facts of a checkpoint.

    Attributes:
        facts: the overview; None: it could not be read yet.
        listing: its windows and keys; None: as above.
        samples: the batches that the page has seen, in order.
        problem: why the checkpoint cannot be read now; empty: it can.
        read_at: when the facts were read, seconds since the epoch.
        metrics: the metrics of ``bm.Listener``; None: not named.
        version: differs where anything but ``read_at`` does.
    """

    facts: Overview | None = None
    listing: Listing | None = None
    samples: Sequence[Sample] = ()
    problem: str = ""
    read_at: float = 0.0
    metrics: Metrics | None = None
    version: str = ""

    def standing_since_us(self, stage: int, name: str | None) -> int | None:
        """The clock of the first seen batch since which a watermark has not moved; None: it moved in the last one."""
        place, since = (stage, name), None
        for before, after in zip(self.samples[-2::-1], self.samples[:0:-1], strict=True):
            if before.watermarks_us.get(place) != after.watermarks_us.get(place):
                break
            since = before.clock_us
        return since


@attrs.define(eq=False)
class Watched:
    """A checkpoint beside a query that runs, is stopped, restarted or upgraded.

    Attributes:
        source: where it is read.
        every: seconds between two looks at its log.
        now: the clock, in seconds.
    """

    source: Source
    every: float
    now: Callable[[], float] = time.time
    _view: View = attrs.field(factory=View, init=False)
    _checked: float | None = attrs.field(default=None, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _samples: deque[Sample] = attrs.field(factory=lambda: deque(maxlen=_SAMPLES), init=False)
    _links: OrderedDict[str, tuple[int, Question]] = attrs.field(factory=OrderedDict, init=False)
    _secret: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), init=False)

    def view(self) -> View:
        """The known facts; reads the log if it is time, and the state if another batch is committed.

        A second reader does not wait for the first one, unless nothing is known.
        """
        if self._lock.acquire(blocking=self._checked is None):
            try:
                if self._checked is None or self.now() - self._checked >= self.every:
                    self._view = self._look()
                    self._checked = self.now()
            finally:
                self._lock.release()
        return self._view

    def link(self, stage: int, question: Question) -> str:
        """A name for a row, which tells nothing of its values."""
        asked = repr((stage, sorted(question.key.items(), key=str), question.start, question.end))
        name = hmac.new(self._secret, asked.encode("utf-8", "backslashreplace"), hashlib.sha256).hexdigest()[:24]
        self._links[name] = stage, question
        self._links.move_to_end(name)
        while len(self._links) > _LINKS:
            self._links.popitem(last=False)
        return name

    def linked(self, name: str) -> tuple[int, Question] | None:
        """The stage and question of a link; None: of an earlier run of the page."""
        return self._links.get(name)

    def _look(self) -> View:
        """Read it; a file that a running query deletes meanwhile does not matter."""
        for attempt in (0, 1):
            try:
                return self._read()
            except Exception as error:  # noqa: BLE001 - the page shows a sentence, and the next look may succeed
                if attempt:
                    return self._failed(error)
        raise AssertionError("an attempt returns")

    def _failed(self, error: Exception) -> View:
        if isinstance(error, BeamishError):
            words = str(error)
        else:
            words = f"checkpoint {self.source.name!r}: it cannot be read now ({describe_foreign(error).partition(chr(10))[0]:.300})"
        return self._versioned(attrs.evolve(self._view, problem=words))

    def _read(self) -> View:
        batches, view, metrics = self.source.batches(), self._view, self.source.metrics()
        last = max((one for one in batches if one.committed), key=lambda one: one.number)
        if view.facts is not None and (view.facts.batch, view.facts.clock_us) == (last.number, last.clock_us):
            facts = attrs.evolve(view.facts, batches=batches_of(batches))
            return self._versioned(attrs.evolve(view, facts=facts, problem="", metrics=metrics))
        found = self.source.opened(batches)
        facts = overview(found)
        if self._samples and facts.batch <= self._samples[-1].batch:  # another query began in this folder
            self._samples.clear()
        self._samples.append(Sample.of(facts))
        return self._versioned(View(facts, Listing(found), tuple(self._samples), "", self.now(), metrics))

    def _versioned(self, view: View) -> View:
        seen = repr((view.facts, view.problem, view.metrics, len(view.samples)))
        return attrs.evolve(view, version=hashlib.sha256(seen.encode("utf-8", "backslashreplace")).hexdigest()[:16])
