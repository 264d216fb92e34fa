"""The application: paths and their answers."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import attrs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from beamish.checkpoint.overview import Listing, Overview, StageOverview
from beamish.checkpoint.question import Question
from beamish.contract.at_rest import First, Order, Waits
from beamish.dashboard import page
from beamish.dashboard.guard import Guard
from beamish.dashboard.html import Child, tag
from beamish.dashboard.watched import View, Watched
from beamish.errors import BeamishError, OptionError, describe_foreign, values_are_hidden
from beamish.plot.colors import DARK, LIGHT, Colors

_FOLDER = Path(__file__).parent
_PANELS = {"light": {"panel": "#f5f7fa", "fused": "#d5e2f7"}, "dark": {"panel": "#1a202b", "fused": "#24385a"}}
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#2563c9"/>'
    '<path d="M3 13V9h3v4zM7 13V5h3v8zM11 13V7h2v6z" fill="#fff"/></svg>'
)
_DROPPED = 20
"""Number of dropped rows that are shown."""
_PANES = 200
"""Maximum number of panes in a picture."""
_drawing = threading.Lock()
"""One picture is drawn at a time."""


@attrs.frozen
class Visit:
    """A request.

    Attributes:
        request: the request.
        place: the page of the checkpoint that it is about.
        view: what is known of that.
    """

    request: Request
    place: page.Place
    view: View


Handler: TypeAlias = Callable[[Visit], Response]


def application(watched: Sequence[Watched], token: str | None = None) -> Guard:
    """The application.

    Args:
        watched: the checkpoints.
        token: what readers must give; None: nothing, and the host must be of this machine.
    """

    def route(path: str, handler: Handler) -> Route:
        def answer(request: Request) -> Response:
            number = request.path_params["number"]
            if number >= len(watched):
                return RedirectResponse("/", 303)
            return _answer(handler, request, page.Place(number, watched))

        return Route(f"/q/{{number:int}}/{path}", answer)

    return Guard(
        Starlette(
            routes=[
                Route("/", lambda _: RedirectResponse("/q/0/", 303)),
                Route("/page.css", lambda _: Response(_css(), media_type="text/css")),
                Route("/icon.svg", lambda _: Response(_ICON, media_type="image/svg+xml")),
                Route("/page.js", lambda _: Response((_FOLDER / "page.js").read_bytes(), media_type="text/javascript")),
                route("", _whole),
                route("facts", _facts),
                route("facts.json", _json),
                route("rows", _rows),
                route("why", _why),
                route("panes.svg", _panes),
                route("dropped", _dropped),
            ]
        ),
        token,
    )


def _css() -> str:
    """The colours of timelines, and the style of the page."""

    def variables(colors: Colors, more: dict[str, str]) -> str:
        return "".join(f"--{name}:{color};" for name, color in (colors.named | more).items())

    light, dark = variables(LIGHT, _PANELS["light"]), variables(DARK, _PANELS["dark"])
    night = f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    return f":root {{ {light} }}\n{night}" + (_FOLDER / "page.css").read_text("utf-8")


def _answer(handler: Handler, request: Request, place: page.Place) -> Response:
    """The answer of a handler; an error is a sentence."""
    try:
        return handler(Visit(request, place, place.of.view()))
    except BeamishError as error:
        return _shown(request, place, "refused", tag("p", f"{error}.", class_="problem", role="alert"), 400)
    except Exception as error:  # noqa: BLE001 - a reader gets a sentence, not a trace
        words = f"It cannot be read now ({describe_foreign(error).partition(chr(10))[0]:.300}); try again."
        return _shown(request, place, "failed", tag("p", words, class_="problem", role="alert"), 500)


def _shown(request: Request, place: page.Place, title: str, found: Child, status: int = 200) -> Response:
    """A part of the page for its script, else a page of its own."""
    if "x-beamish-part" in request.headers:
        return HTMLResponse(tag("div", found), status)
    back = tag("p", tag("a", "Back to all facts", href=place.path()))
    return HTMLResponse(page.document(place, title, tag("section", found, back)), status)


def _whole(visit: Visit) -> Response:
    return HTMLResponse(page.whole(visit.place, visit.view))


def _facts(visit: Visit) -> Response:
    if visit.request.query_params.get("version") == visit.view.version:
        return Response(status_code=204)
    batch = "no batch" if visit.view.facts is None else f"batch {visit.view.facts.batch}"
    headers = {
        "x-beamish-version": visit.view.version,
        "x-beamish-title": quote(f"{batch}, {visit.place.of.source.name} - beamish watch"),
        "x-beamish-structure": quote(page.structure(visit.view)),
    }
    return HTMLResponse(page.facts(visit.view), headers=headers)


def _json(visit: Visit) -> Response:
    facts = None if visit.view.facts is None else visit.view.facts.as_json()
    return JSONResponse({"problem": visit.view.problem, "read_at": visit.view.read_at, "facts": facts})


def _rows(visit: Visit) -> Response:
    facts, listing = _known(visit.place, visit.view)
    stage = _stage(visit.request, facts)
    first = First(
        page.ROWS,
        _choice(visit.request, "order", Order) or Order.NEXT,
        _choice(visit.request, "waits", Waits),
    )
    keys = _keys(visit.request, stage)
    found = listing.rows(stage.number, keys, first)
    return _shown(visit.request, visit.place, "windows", page.rows(visit.place, stage, found, first, keys))


def _why(visit: Visit) -> Response:
    facts, listing = _known(visit.place, visit.view)
    link = visit.request.query_params.get("id")
    if link is None:
        stage = _stage(visit.request, facts)
        question = listing.asked(
            stage.number, _keys(visit.request, stage), visit.request.query_params.get("window") or None
        )
        number, link = stage.number, visit.place.of.link(stage.number, question)
    else:
        number, question = _linked(visit.place, link)
    words = listing.why(number, question)
    return _shown(visit.request, visit.place, "why", page.why(visit.place, words, _picture(visit.place, link)))


def _picture(place: page.Place, link: str) -> Child:
    """The picture of panes, or why it is missing; None: panes are not kept."""
    if not place.of.source.has_panes:
        return None
    if values_are_hidden():
        return tag("p", "Its panes are not drawn, since values are hidden.")
    return page.picture_of_panes(place, link)


def _panes(visit: Visit) -> Response:
    from beamish.plot import timeline

    if values_are_hidden():
        raise OptionError("watch: panes are not drawn, since values are hidden")
    _, question = _linked(visit.place, visit.request.query_params.get("id", ""))
    panes, time = visit.place.of.source.panes(question, _PANES)
    figure = timeline(panes, processing_time=time)
    with _drawing, tempfile.TemporaryDirectory() as folder:
        drawn = figure.save(Path(folder) / "panes.svg", dark="dark" in visit.request.query_params).read_bytes()
    return Response(drawn, media_type="image/svg+xml")


def _dropped(visit: Visit) -> Response:
    return _shown(visit.request, visit.place, "dropped rows", page.dropped(visit.place.of.source.dropped(_DROPPED)))


def _known(place: page.Place, view: View) -> tuple[Overview, Listing]:
    if view.facts is None or view.listing is None:
        raise OptionError(view.problem or f"checkpoint {place.of.source.name}: nothing is read yet")
    return view.facts, view.listing


def _linked(place: page.Place, link: str) -> tuple[int, Question]:
    found = place.of.linked(link)
    if found is None:
        raise OptionError("why: this link is of an earlier run of the page; list the windows again")
    return found


def _stage(request: Request, facts: Overview) -> StageOverview:
    given = request.query_params.get("stage", "")
    stage = next((one for one in facts.stages if str(one.number) == given), None)
    if stage is None or not (stage.has_windows or stage.has_keys):
        raise OptionError(f"stage {given}: it has no windows or keys to list")
    return stage


def _keys(request: Request, stage: StageOverview) -> list[str]:
    """The texts ``name=value`` of a form: its fields are numbered, since names of columns may be anything."""
    given = [(name, request.query_params.get(f"key{number}", "")) for number, name in enumerate(stage.keys)]
    return [f"{name}={value}" for name, value in given if value]


def _choice(request: Request, name: str, choices: Any) -> Any:
    given = request.query_params.get(name, "")
    if not given:
        return None
    if given not in list(choices):
        raise OptionError(f"{name}={given!r}: must be one of {', '.join(choices)}")
    return choices(given)
