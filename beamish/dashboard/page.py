"""The page: facts of a checkpoint as markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from urllib.parse import urlencode

import attrs
import pyarrow as pa

from beamish.checkpoint.overview import Bin, HeldOverview, Overview, ShardOverview, StageOverview, StoredRow
from beamish.contract.at_rest import First, Order, Waits
from beamish.dashboard.html import Child, Markup, joined, tag
from beamish.dashboard.metrics import Metrics
from beamish.dashboard.pictures import Bar, bars, stages, title_of
from beamish.dashboard.watched import Sample, View, Watched
from beamish.durations import span_in_words
from beamish.errors import shown
from beamish.instants import END_OF_TIME_US, LATEST_US, instant, instant_in_words

SECOND_US = 1_000_000
ROWS = 50
"""Number of windows that are listed."""
_SHARDS = 20
"""Number of shards in a table."""
_WAITS = {
    Waits.WATERMARK: "the watermark",
    Waits.TRIGGER: "their trigger: rows, the clock or a value",
    Waits.EXPIRY: "late rows, until they expire",
}
_ORDERS = {
    Order.NEXT: "by end, those that wait for late rows last",
    Order.LAST: "by end, the last one first",
    Order.ROWS: "by number of new rows",
    Order.PANES: "by number of panes",
}
_MIB = 2**20


@attrs.frozen
class Place:
    """The page of a checkpoint.

    Attributes:
        number: its number among the watched ones.
        watched: all of them.
    """

    number: int
    watched: Sequence[Watched]

    @property
    def of(self) -> Watched:
        """The checkpoint."""
        return self.watched[self.number]

    def path(self, name: str = "", **query: str | int | Sequence[str]) -> str:
        """A path of the page."""
        return f"/q/{self.number}/{name}" + (f"?{urlencode(query, doseq=True)}" if query else "")


def document(place: Place, title: str, main: Child) -> Markup:
    """A whole page."""
    others = [
        tag(
            "a",
            one.source.name,
            href=Place(number, place.watched).path(),
            aria_current="page" if number == place.number else None,
        )
        for number, one in enumerate(place.watched)
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} - beamish watch"),
        tag("link", rel="icon", href="/icon.svg"),
        tag("link", rel="stylesheet", href="/page.css"),
        tag("script", src="/page.js", defer=True),
    )
    body = tag(
        "body",
        tag("a", "Skip to the facts", href="#facts", class_="skip"),
        tag(
            "header",
            tag("h1", place.of.source.name),
            tag("nav", others, aria_label="Checkpoints") if len(others) > 1 else None,
        ),
        tag("p", "The program that serves this page does not answer.", id="gone", role="alert", hidden=True),
        tag("main", main),
        tag("footer", tag("p", "beamish watch. Times are in UTC. Nothing here changes the query or its checkpoint.")),
        data_every=place.of.every,
    )
    return joined([Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en")])


def whole(place: Place, view: View) -> Markup:
    """The page of a checkpoint."""
    batch = "no batch" if view.facts is None else f"batch {view.facts.batch}"
    return document(
        place,
        f"{batch}, {place.of.source.name}",
        [
            tag(
                "div",
                facts(view),
                id="facts",
                tabindex=-1,
                data_source=place.path("facts"),
                data_version=view.version,
                data_structure=structure(view),
            ),
            tag("section", [] if view.facts is None else list(_explore(place, view.facts)), id="explore"),
            tag("section", id="why", tabindex=-1, aria_live="polite"),
            _late(place),
        ],
    )


def structure(view: View) -> str:
    """The stages and keys that the forms of the page are made for."""
    return "" if view.facts is None else ";".join(f"{one.number}:{','.join(one.keys)}" for one in view.facts.stages)


# Facts


def facts(view: View) -> Markup:
    """The facts that are refreshed after each batch."""
    return joined([_problem(view), *([] if view.facts is None else _facts(view, view.facts))])


def _problem(view: View) -> Child:
    if not view.problem:
        return None
    old = "" if view.facts is None else f" The facts below are those of batch {view.facts.batch}."
    return tag("p", f"{view.problem}.{old}", class_="problem", role="alert")


def _facts(view: View, of: Overview) -> Iterator[Child]:
    yield _status(of)
    yield tag(
        "section",
        tag("h2", "Pipeline"),
        tag("div", stages(of), class_="scroll"),
        tag("details", tag("summary", "In words"), [_lines(stage) for stage in of.stages], id="pipeline-words"),
    )
    for stage in of.stages:
        yield _stage(view, of, stage)
    yield _batches(of)
    yield _samples(view.samples)
    if view.metrics is not None:
        yield _metrics(view.metrics)


def _status(of: Overview) -> Markup:
    running = [one for one in of.batches if not one.committed and one.number > of.batch]
    sentences: list[Child] = [
        f"Batch {of.batch} is the last committed one. It began at ",
        _time(of.clock_us),
        ", ",
        _ago(of.clock_us),
        ".",
    ]
    for one in running[-1:]:
        sentences += [f" Batch {one.number} began ", _ago(one.clock_us), " and is not committed."]
    if of.next_watermark_us is not None:
        sentences.append(f" The watermark of the next batch is {_watermark(of.next_watermark_us)}.")
    return tag("p", sentences, class_="status")


def _lines(stage: StageOverview) -> Markup:
    return joined(
        [
            tag("h3", f"Stage {stage.number}"),
            tag("dl", [[tag("dt", name), tag("dd", words)] for name, words in stage.lines.items()]),
        ]
    )


def _stage(view: View, of: Overview, stage: StageOverview) -> Markup:
    facts_ = [
        ("watermark", joined(_watermark_facts(view, of, stage))),
        ("windows", _windows(stage) if stage.has_windows else None),
        ("fires", stage.fires),
        ("held", _held(stage.held)),
        ("state", f"{_bytes(stage.size)} in {len(stage.shards)} of {stage.shard_count} shards"),
        ("emitted", None if stage.rows_out is None else f"{_count(stage.rows_out, 'row')}, retractions included"),
        ("dropped", _dropped(stage.dropped)),
        ("unknown", [tag("p", sentence) for sentence in stage.unknown] or None),
    ]
    return tag(
        "section",
        tag("h2", f"Stage {stage.number} of {len(of.stages)}"),
        tag("p", title_of(stage), class_="lead"),
        tag("dl", [[tag("dt", name), tag("dd", words)] for name, words in facts_ if words]),
        _inputs(stage),
        _histogram(stage),
        _due(stage.held),
        _shards(stage),
        id=f"stage-{stage.number}",
    )


def _watermark_facts(view: View, of: Overview, stage: StageOverview) -> Iterator[Child]:
    if stage.counts_rows:
        yield "not used: windows count rows"
        return
    yield f"{_watermark(stage.watermark_us)}{_behind(of, stage.watermark_us)}."
    if stage.held_back:
        yield tag("strong", f" {stage.held_back}")
    holds = next((one.name for one in stage.inputs if one.holds_back), None)
    seen_us = view.standing_since_us(stage.number, holds)
    if stage.standing is not None and stage.standing.clock_us < of.clock_us:
        since = stage.standing
        span = span_in_words(of.clock_us - since.clock_us)
        words = "for longer than the log goes back: since before" if since.is_oldest else "since"
        yield f" It has not moved {words} batch {since.batch}, {span} before the last batch."
    elif seen_us is not None:
        whose = f"That of `{holds}`" if holds else "It"
        yield f" {whose} has not moved for {span_in_words(of.clock_us - seen_us)}, while this page was open."


def _behind(of: Overview, watermark_us: int | None) -> str:
    if watermark_us is None or watermark_us == END_OF_TIME_US:
        return ""
    away = of.clock_us - watermark_us
    return f", {span_in_words(away)} {'behind' if away >= 0 else 'ahead of'} the clock of its last batch"


def _windows(stage: StageOverview) -> str:
    if not stage.windows:
        return "none is stored"
    waiting = [f"{stage.waiting(waits):,} for {words}" for waits, words in _WAITS.items() if stage.waiting(waits)]
    rows = sum(one.new_rows for one in stage.bins)
    return f"{stage.windows:,} stored, which wait: {'; '.join(waiting)}. {_count(rows, 'row')} in no pane yet."


def _held(held: HeldOverview | None) -> str | None:
    if held is None:
        return None
    words = f"{_count(held.updates, 'update')} by the suppress {held.name!r}"
    if held.unknown:
        return f"{words}; when they are due is unknown: {held.unknown}"
    undated = f"; {held.undated:,} not by themselves" if held.undated else ""
    if not held.due:
        return words + undated
    first, last = held.due[0][0], held.due[-1][1]
    return f"{words}, due from {instant_in_words(first)} to {instant_in_words(last)}{undated}"


def _dropped(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "no row"


def _inputs(stage: StageOverview) -> Child:
    if len(stage.inputs) < 2:
        return None
    rows = [
        [
            one.name or "",
            f"stage {one.of_stage}" if one.of_stage else "source",
            _watermark(one.watermark_us),
            "unknown" if one.latest_us is None else instant_in_words(one.latest_us),
            one.moves or "",
            "holds it back" if one.holds_back else "",
        ]
        for one in stage.inputs
    ]
    return _table("Inputs", ["input", "reads", "watermark", "latest row", "moves", ""], rows)


def _histogram(stage: StageOverview) -> Child:
    if not stage.bins:
        return None
    drawn = [Bar(dict(one.windows.items()), _bin_words(stage, one)) for one in stage.bins]
    dated = [one for one in stage.bins if one.end_us is not None]
    marker = _marker(dated, stage.watermark_us)
    first, last = (_bound(stage, dated[0].start_us), _bound(stage, dated[-1].end_us)) if dated else ("", "")
    endless = ", and windows without an end at the right" if len(dated) < len(stage.bins) else ""
    legend = [
        [tag("span", class_=f"key {waits}"), f"wait for {words}"]
        for waits, words in _WAITS.items()
        if stage.waiting(waits)
    ]
    line = [[tag("span", class_="key marker"), "watermark"]] if marker is not None else []
    return tag(
        "figure",
        tag("figcaption", f"Windows by their end{endless}"),
        bars(drawn, f"{_windows(stage)} By their end, from {first} to {last}.", marker=marker),
        _ends(first, last),
        tag("p", [tag("span", one) for one in [*legend, *line]], class_="legend"),
        tag(
            "details",
            tag("summary", "Numbers"),
            _table(
                "",
                ["end", *_WAITS],
                [[_span(stage, one), *(one.windows.get(waits, 0) for waits in _WAITS)] for one in stage.bins],
            ),
            id=f"ends-{stage.number}",
        ),
    )


def _marker(dated: Sequence[Bin], watermark_us: int | None) -> float | None:
    """The place of the watermark in a histogram, if it is in it."""
    if not dated or watermark_us is None:
        return None
    first, width = dated[0].start_us or 0, (dated[0].end_us or 0) - (dated[0].start_us or 0)
    place = (watermark_us - first) / width
    return place if 0 <= place <= len(dated) else None


def _bin_words(stage: StageOverview, one: Bin) -> str:
    each = ", ".join(f"{count:,} wait for {_WAITS[waits]}" for waits, count in one.windows.items())
    return f"{_span(stage, one)}: {each or 'none'}"


def _span(stage: StageOverview, one: Bin) -> str:
    if one.start_us is None or one.end_us is None:
        return "without an end"
    return f"{_bound(stage, one.start_us)} to {_bound(stage, one.end_us)}"


def _bound(stage: StageOverview, at: int | None) -> str:
    return "" if at is None else f"row {at:,}" if stage.counts_rows else instant_in_words(at)


def _due(held: HeldOverview | None) -> Child:
    if held is None or len(held.due) < 2:
        return None
    drawn = [
        Bar({"held": count}, f"{count:,} due from {instant_in_words(start)} to {instant_in_words(end)}")
        for start, end, count in held.due
    ]
    return tag(
        "figure",
        tag("figcaption", "Held updates by the time at which they are due"),
        bars(drawn, f"Held updates: {_held(held)}"),
        _ends(instant_in_words(held.due[0][0]), instant_in_words(held.due[-1][1])),
    )


def _shards(stage: StageOverview) -> Child:
    if len(stage.shards) < 2:
        return None

    def by(one: ShardOverview) -> int:
        return one.windows if stage.has_windows else one.size

    what = "Windows" if stage.has_windows else "Bytes of state"
    drawn = [Bar({"shard": by(one)}, _shard_words(one)) for one in stage.shards]
    total, most = sum(map(by, stage.shards)), max(map(by, stage.shards))
    skew = most * len(stage.shards) / total if total else 1.0
    words = f"{what} per shard: the largest has {skew:.1f} times the mean"
    largest = sorted(stage.shards, key=by, reverse=True)
    rows: list[list[Child]] = [
        [one.shard, f"{one.windows:,}", f"{one.keys:,}", _bytes(one.size)] for one in largest[:_SHARDS]
    ]
    rest = f"The {_SHARDS} largest" if len(largest) > _SHARDS else ""
    return tag(
        "figure",
        tag("figcaption", words),
        bars(drawn, f"{words}; {_shard_words(largest[0])}"),
        tag(
            "details",
            tag("summary", "Numbers"),
            _table(rest, ["shard", "windows", "keys", "state"], rows),
            id=f"shards-{stage.number}",
        ),
    )


def _shard_words(one: ShardOverview) -> str:
    return f"shard {one.shard}: {_count(one.windows, 'window')}, {_count(one.keys, 'key')}, {_bytes(one.size)}"


def _batches(of: Overview) -> Child:
    done = [one for one in of.batches if one.committed]
    first, last = f"batch {done[0].number}", f"batch {done[-1].number}"
    timed = [one for one in done if one.seconds is not None]
    figures = []
    if timed:
        drawn = [
            Bar(
                {"time": one.seconds or 0.0},
                f"batch {one.number}: {'unknown' if one.seconds is None else f'{one.seconds:,.1f} s'}",
            )
            for one in done
        ]
        seconds = [one.seconds or 0.0 for one in timed]
        words = f"Seconds per batch: {seconds[-1]:,.1f} the last one, at most {max(seconds):,.1f}"
        figures.append(tag("figure", tag("figcaption", words), bars(drawn, words), _ends(first, last)))
    dated = [one for one in done if one.watermark_us is not None and abs(one.watermark_us) <= LATEST_US]
    if dated:
        lags = [max(one.clock_us - (one.watermark_us or 0), 0) for one in dated]
        drawn = [
            Bar({"lag": lag / SECOND_US}, f"batch {one.number}: {span_in_words(lag)} behind")
            for one, lag in zip(dated, lags, strict=True)
        ]
        words = f"The query's watermark behind the clock: {span_in_words(lags[-1])} in the last batch, at most {span_in_words(max(lags))}"
        ends = _ends(f"batch {dated[0].number}", f"batch {dated[-1].number}")
        figures.append(tag("figure", tag("figcaption", words), bars(drawn, words), ends))
    unknown = None if timed else tag("p", "How long batches took is unknown: the files of the checkpoint are copies.")
    return tag(
        "section",
        tag("h2", "Batches"),
        tag("p", f"{len(done):,} batches are in the log, {first} to {last}."),
        unknown,
        figures,
    )


def _samples(samples: Sequence[Sample]) -> Child:
    if len(samples) < 2:
        return None
    pairs = list(pairwise(samples))
    charts = [
        ("Rows emitted", [max((after.rows_out or 0) - (before.rows_out or 0), 0) for before, after in pairs], "out"),
        ("Rows dropped", [max(after.dropped - before.dropped, 0) for before, after in pairs], "dropped"),
        ("Windows stored", [after.windows for _, after in pairs], "shard"),
        ("Bytes of state", [after.size for _, after in pairs], "shard"),
    ]
    figures = []
    for name, values, kind in charts:
        each = [
            Bar({kind: value}, f"batch {after.batch}: {value:,}")
            for value, (_, after) in zip(values, pairs, strict=True)
        ]
        words = f"{name}: {values[-1]:,} last, at most {max(values):,}"
        figures.append(tag("figure", tag("figcaption", words), bars(each, words)))
    first, last = samples[0].batch, samples[-1].batch
    return tag(
        "section",
        tag("h2", "While this page was open"),
        tag("p", f"From batch {first} to batch {last}; a bar for each batch that was read."),
        tag("div", figures, class_="grid"),
    )


def _metrics(metrics: Metrics) -> Markup:
    return tag(
        "section",
        tag("h2", "Metrics of bm.Listener"),
        tag("p", f"{metrics.problem}.", class_="problem") if metrics.problem else None,
        [_of_query(metrics, query) for query in metrics.queries],
    )


def _of_query(metrics: Metrics, query: str) -> Markup:
    named = {
        "rows in": ("beamish_input_rows",),
        "skipped": ("beamish_skipped",),
        "panes": ("beamish_panes", "kind", "timing"),
        "dropped": ("beamish_dropped", "reason"),
    }
    rows = [(name, metrics.by(query, *of)) for name, of in named.items()]
    known = {name for name, *_ in named.values()}
    gauges = sorted({name for name, labels, _ in metrics.values if labels.get("query") == query} - known)
    rows += [(name.removeprefix("beamish_").replace("_", " "), metrics.by(query, name, "input")) for name in gauges]
    return joined(
        [
            tag("h3", query),
            tag("dl", [[tag("dt", name), tag("dd", _values(values))] for name, values in rows if values]),
        ]
    )


def _values(values: Mapping[str, float]) -> str:
    return (
        ", ".join(f"{value:,.15g} {labels}".strip() for labels, value in values.items() if value or len(values) == 1)
        or "0"
    )


# Windows, keys and dropped rows


def _explore(place: Place, of: Overview) -> Iterator[Child]:
    yield tag("h2", "Why has it not fired?")
    for stage in of.stages:
        if stage.has_windows or stage.has_keys:
            yield _form(place, stage, is_only=len(of.stages) == 1)
            yield tag("div", id=f"rows-{stage.number}", data_source=place.path("rows", stage=stage.number))


def _form(place: Place, stage: StageOverview, *, is_only: bool) -> Markup:
    what = "windows" if stage.has_windows else "keys"
    keys = [
        tag("label", name, tag("input", name=f"key{number}", autocomplete="off", spellcheck="false"))
        for number, name in enumerate(stage.keys)
    ]
    orders = [tag("option", words, value=order) for order, words in _ORDERS.items()]
    waits = [tag("option", "anything", value=""), *(tag("option", words, value=one) for one, words in _WAITS.items())]
    at = tag(
        "input",
        name="window",
        autocomplete="off",
        placeholder="row number" if stage.counts_rows else "2026-01-01T10:14",
    )
    of_windows = [
        tag("label", "wait for", tag("select", waits, name="waits")),
        tag("label", "order", tag("select", orders, name="order")),
        tag("label", "window at", at),
    ]
    return tag(
        "form",
        tag("h3", f"Stage {stage.number}: {what}" if not is_only else what.capitalize()),
        tag("input", type="hidden", name="stage", value=stage.number),
        tag("div", keys, of_windows if stage.has_windows else None, class_="fields"),
        tag("button", f"List {what}", type="submit"),
        tag("button", "Why?", type="submit", formaction=place.path("why"), data_into="why"),
        action=place.path("rows"),
        method="get",
        data_into=f"rows-{stage.number}",
    )


def rows(place: Place, stage: StageOverview, found: Sequence[StoredRow], first: First, keys: Sequence[str]) -> Markup:
    """A list of stored windows or keys, each with a link to why."""
    if not found:
        return tag("p", "Nothing is stored that matches.", role="status")
    is_windows = stage.has_windows
    of_windows = ["window", "waits for", "new rows", "panes", "last pane"]
    head = [*stage.keys, *of_windows] if is_windows else [*(stage.keys or ["key"]), "stored", "entries", "then"]
    listed = [_row(place, stage, number, row) for number, row in enumerate(found)]
    whole_ = f" of {stage.windows:,}" if is_windows and not keys and first.waits is None else ""
    order = f", {_ORDERS[first.order]}" if is_windows else ""
    what = "windows" if is_windows else "keys"
    return _table(f"{len(found):,}{whole_} {what}{order}", head, listed)


def _row(place: Place, stage: StageOverview, number: int, row: StoredRow) -> list[Child]:
    link = place.of.link(stage.number, row.question)

    def to(words: str) -> Markup:
        return tag("a", words, href=place.path("why", id=link), id=f"row-{stage.number}-{number}", data_into="why")

    keys: list[Child] = [row.key.get(name, "") for name in stage.keys]
    if row.stored:
        first, *rest = keys or ["the only key"]
        return [to(str(first)), *rest, row.stored, f"{row.new_rows:,}", row.waits_for]
    waits = row.waits_for or (
        "nothing: it is closed, and stored to drop later rows" if row.waits is Waits.EXPIRY else "an unknown condition"
    )
    return [*keys, to(row.window), waits, f"{row.new_rows:,}", f"{row.panes or 0:,}", row.last_timing or "none"]


def why(place: Place, words: str, picture: Child) -> Markup:
    """Why a window has not fired, in words."""
    return joined(
        [
            tag("h2", "Why", tabindex=-1),
            [tag("p", paragraph) for paragraph in words.split("\n\n")],
            picture,
            tag("p", tag("a", "Back to all facts", href=place.path())),
        ]
    )


def picture_of_panes(place: Place, link: str) -> Markup:
    """The picture of a key's panes, light and dark."""
    dark = tag("source", srcset=place.path("panes.svg", id=link, dark=1), media="(prefers-color-scheme: dark)")
    image = tag(
        "img",
        src=place.path("panes.svg", id=link),
        alt="The panes of this key in windows around this one",
        loading="lazy",
    )
    return tag(
        "figure",
        tag("figcaption", "Its panes, and those of the windows around it"),
        Markup(f"<picture>{dark}{image}</picture>"),
    )


def _late(place: Place) -> Child:
    if not place.of.source.has_dropped:
        return None
    link = tag("a", "List them", href=place.path("dropped"), data_into="dropped")
    return tag(
        "section",
        tag("h2", "Dropped rows"),
        tag("p", link),
        tag("div", id="dropped", tabindex=-1, data_source=place.path("dropped")),
    )


def dropped(table: pa.Table) -> Markup:
    """The last dropped rows."""
    if not table.num_rows:
        return tag("p", "The table has no dropped row.", role="status")
    listed = [[_cell(name, value) for name, value in row.items()] for row in table.to_pylist()]
    return _table(f"The last {table.num_rows}", list(table.schema.names), listed)


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if name == "reason":
        return str(value)
    if name == "late_by" and isinstance(value, int):
        return span_in_words(value)
    return shown(value)


# Parts


def _table(caption: str, head: Sequence[str], rows_: Iterable[Iterable[Child]]) -> Markup:
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption) if caption else None,
            tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
            tag(
                "tbody",
                [
                    tag("tr", [tag("td", cell, data_head=name) for name, cell in zip(head, row, strict=True)])
                    for row in rows_
                ],
            ),
        ),
        class_="scroll",
        tabindex=0,
    )


def _ends(first: str, last: str) -> Markup:
    return tag("p", tag("span", first), tag("span", last), class_="ends")


def _time(us: int) -> Markup:
    at = instant(us // SECOND_US * SECOND_US)
    return tag("time", f"{at:%Y-%m-%d %H:%M:%S}", datetime=at.isoformat())


def _ago(us: int) -> Markup:
    """A time that the page's script keeps up to date."""
    return tag("span", "some time ago", data_since=us // SECOND_US)


def _watermark(us: int | None) -> str:
    if us is None:
        return "none yet"
    return "at the end of time" if us == END_OF_TIME_US else f"at {instant_in_words(us)}"


def _bytes(size: int) -> str:
    return f"{size:,} bytes" if size < _MIB else f"{size / _MIB:,.1f} MiB"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
