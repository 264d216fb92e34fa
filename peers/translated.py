"""Cases of Beam Java as those of Beam Python, and back, where both have the same options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peers.peer import Case

COMBINERS = {"end_of_window": "END_OF_WINDOW", "earliest": "EARLIEST_IN_PANE", "latest": "LATEST_IN_PANE"}
CALLS = {"AfterAny": "after_any", "AfterAll": "after_all", "AfterEach": "after_each"}
SECOND = 1_000_000


def to_beam_python(case: Case) -> Case | None:
    """The same case; None if it has an option that Beam Python has not."""
    window, trigger = _window(case["window"]), _trigger(case["trigger"])
    if window is None or trigger is None or case["mode"] == "accumulating_and_retracting":
        return None
    if case["on_time"] != "fire_always" or case["closing"] != "fire_always":
        return None
    strategy = {
        "window_fn": window,
        "trigger": trigger,
        "accumulation_mode": case["mode"].upper(),
        "output_time": COMBINERS[case["combiner"]],
        "closing_behavior": "EMIT_ALWAYS",
        "on_time_behavior": "FIRE_ALWAYS",
    }
    if case["lateness"]:
        strategy["allowed_lateness"] = str(case["lateness"] // 1000)
    return {"windowing": strategy, "script": case["script"]}


def _window(option: Mapping[str, Any]) -> dict[str, Any] | None:
    match option:
        case {"is": "FixedWindows", "size": size}:
            return _urn("fixed_windows", size=size, offset=option.get("offset", 0) % size)
        case {"is": "SlidingWindows", "size": size, "period": period}:
            return _urn("sliding_windows", size=size, offset=option.get("offset", 0) % period, period=period)
        case {"is": "Sessions", "gap": gap}:
            return _urn("session_windows", gap_size=gap)
        case {"is": "GlobalWindow"}:
            return _urn("global_windows")
    return None


def _urn(name: str, **fields: int) -> dict[str, Any]:
    return {"urn": f"beam:window_fn:{name}:v1", **fields}


def _trigger(spec: Any) -> dict[str, Any] | None:
    match spec:
        case [kind, parts]:
            some = [_trigger(part) for part in parts]
            return None if None in some else {CALLS[kind]: {"subtriggers": some}}
        case {"is": "AfterCount", "n": n}:
            return {"element_count": {"element_count": n}}
        case {"is": "AfterProcessingTime"} if spec.get("delay", 0) % SECOND == 0 and "aligned_to" not in spec:
            delay = {"delay_millis": str(spec["delay"] // 1000)} if spec.get("delay", 0) else {}
            return {"after_processing_time": {"timestamp_transforms": [{"delay": delay}]}}
        case {"is": "AfterWatermark"}:
            firings = {name: _trigger(spec[name]) for name in ("early", "late") if name in spec}
            return (
                None
                if None in firings.values()
                else {"after_end_of_window": {f"{name}_firings": part for name, part in firings.items()}}
            )
        case {"is": "Repeatedly", "trigger": part}:
            inner = _trigger(part)
            return None if inner is None else {"repeat": {"subtrigger": inner}}
        case {"is": "OrFinally", "main": main, "finally_": last}:
            both = _trigger(main), _trigger(last)
            return None if None in both else {"or_finally": {"main": both[0], "finally": both[1]}}
        case {"is": "Default"}:
            return {"default": {}}
        case {"is": "Never"}:
            return {"never": {}}
    return None


def from_beam_python(case: Case) -> Case | None:
    """The same case for Beam Java; None if it has an option that Beam Java has not."""
    strategy = case["windowing"]
    trigger = _spec(strategy["trigger"])
    return (
        None
        if trigger is None
        else {
            "window": _option(strategy["window_fn"]),
            "trigger": trigger,
            "lateness": int(strategy.get("allowed_lateness", 0)) * 1000,
            "mode": strategy["accumulation_mode"].lower(),
            "on_time": "fire_always",
            "closing": "fire_always",
            "combiner": {value: name for name, value in COMBINERS.items()}[strategy["output_time"]],
            "script": case["script"],
        }
    )


def _option(window: Mapping[str, Any]) -> dict[str, Any]:
    match window["urn"].split(":")[2]:
        case "fixed_windows":
            found = {"is": "FixedWindows", "size": window["size"], "offset": window["offset"]}
        case "sliding_windows":
            found = {"is": "SlidingWindows", **{name: window[name] for name in ("size", "period", "offset")}}
        case "session_windows":
            return {"is": "Sessions", "gap": window["gap_size"]}
        case _:
            return {"is": "GlobalWindow"}
    return {name: value for name, value in found.items() if name != "offset" or value}


def _spec(trigger: Mapping[str, Any]) -> Any:
    ((kind, fields),) = trigger.items()
    match kind:
        case "after_any" | "after_all" | "after_each":
            some = [_spec(part) for part in fields["subtriggers"]]
            return None if None in some else [{value: name for name, value in CALLS.items()}[kind], some]
        case "element_count":
            return {"is": "AfterCount", "n": fields["element_count"]}
        case "after_processing_time":
            delay = int(fields["timestamp_transforms"][0]["delay"].get("delay_millis", 0)) * 1000
            return {"is": "AfterProcessingTime"} | ({"delay": delay} if delay else {})
        case "after_end_of_window":
            firings = {
                name: _spec(fields[f"{name}_firings"]) for name in ("early", "late") if f"{name}_firings" in fields
            }
            return None if None in firings.values() else {"is": "AfterWatermark", **firings}
        case "repeat":
            inner = _spec(fields["subtrigger"])
            return None if inner is None else {"is": "Repeatedly", "trigger": inner}
        case "or_finally":
            main, last = _spec(fields["main"]), _spec(fields["finally"])
            return None if None in (main, last) else {"is": "OrFinally", "main": main, "finally_": last}
        case "default" | "never":
            return {"is": kind.capitalize()}
    return None
