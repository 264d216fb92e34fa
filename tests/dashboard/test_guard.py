"""Requests that the page refuses, and the headers of its answers."""

from __future__ import annotations

import socket

import pytest
from starlette.testclient import TestClient

from beamish.__main__ import main
from beamish.dashboard.guard import COOKIE, HEADERS, is_loopback
from beamish.dashboard.server import application
from beamish.dashboard.watched import Watched
from tests.dashboard.scenes import SCORES, SCRIPT
from tests.dashboard.scripted import ScriptSource

OWN = "http://127.0.0.1:8450"


def client_of(token=None, base_url=OWN):
    app = application([Watched(ScriptSource.after(SCORES, SCRIPT), 10.0)], token)
    return TestClient(app, base_url=base_url, follow_redirects=False)


@pytest.mark.parametrize("host", ["127.0.0.1:8450", "localhost", "LOCALHOST:1", "[::1]:8450", "127.8.8.8"])
def test_names_of_this_machine_are_answered(host):
    assert client_of().get("/q/0/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8450",
        "10.0.0.1",
        "0.0.0.0",
        "",
        "a b",
        "[::1",
        "user@localhost",
    ],
)
def test_other_hosts_are_refused(host):
    answer = client_of().get("/q/0/", headers={"host": host})
    assert answer.status_code == 403
    assert "scores" not in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": OWN}, 200),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "https://127.0.0.1:8450"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/q/0/", "/q/0/facts.json", "/page.js"])
def test_other_origins_and_sites_are_refused(path, headers, status):
    assert client_of().get(path, headers=headers).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading_is_answered(method):
    assert client_of().request(method, "/q/0/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/q/0/", "/q/0/facts", "/page.css", "/page.js", "/nowhere", "/q/0/why?id=none"])
def test_every_answer_has_the_headers(path):
    answer = client_of().get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "access-control-allow-origin" not in answer.headers
    refused = client_of().get(path, headers={"host": "evil.example"})
    assert {name: refused.headers[name] for name in HEADERS} == HEADERS


def test_the_policy_allows_nothing_but_the_own_script_and_style():
    rules = dict(rule.strip().split(" ", 1) for rule in HEADERS["content-security-policy"].split(";"))
    assert rules.pop("default-src") == "'none'"
    assert set(rules.values()) == {"'self'", "'none'"}
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"


def test_another_address_needs_the_token():
    away = "http://10.1.2.3:8450"
    client = client_of("right", away)
    for path in ("/q/0/", "/q/0/facts.json", "/page.js", "/q/0/?token=wrong"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert "scores" not in answer.text
    assert client.get("/q/0/", headers={"authorization": "Bearer right"}).status_code == 200
    first = client.get("/q/0/rows?stage=1&token=right")
    assert (first.status_code, first.headers["location"]) == (303, "/q/0/rows?stage=1")
    cookie = first.headers["set-cookie"].lower()
    assert cookie.startswith(f"{COOKIE}=right")
    assert {"httponly", "samesite=lax"} <= set(cookie.split("; "))
    assert client.get("/q/0/").status_code == 200
    assert client.get("/q/0/", headers={"origin": "http://evil.example"}).status_code == 403


def test_addresses_of_this_machine():
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "::1", "[::1]"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "localhost.", "example.com", ""]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--every", "0s"], "must be above 0"),
        (["--every", "100ms"], "must be at least 1 second"),
        (["--port", "65536"], "must be at most 65535"),
        (["--panes", "a", "--panes", "b"], "there are more of them than checkpoints"),
        (["--host", "no.such.host.invalid"], "give another --port"),
        (["--pipeline", "nowhere"], "must be MODULE:NAME"),
    ],
)
def test_wrong_options_are_refused_before_spark_starts(arguments, words, capsys):
    assert main(["watch", "/checkpoints/scores", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_port_in_use_is_reported(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["watch", "/checkpoints/scores", "--port", str(other.getsockname()[1])]) == 1
    assert "give another --port, or 0 for a free one" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_package_is_named(package, monkeypatch, capsys):
    monkeypatch.setattr("beamish.dashboard.command.installed", lambda name: name != package)
    assert main(["watch", "/checkpoints/scores"]) == 1
    assert f"the package {package} is not installed: pip install 'beamish[watch]'" in capsys.readouterr().err


@pytest.mark.parametrize(("host", "has_token"), [("127.0.0.1", False), ("::1", False), ("0.0.0.0", True)])
def test_the_address_is_printed_with_a_token_unless_it_is_loopback(host, has_token, monkeypatch, capsys):
    served = []
    monkeypatch.setattr("beamish.spark.runtime.session.reading_session", lambda _: None)
    monkeypatch.setattr("beamish.dashboard.command._serve", lambda app, listening: served.append((app, listening)))
    assert (
        main(["watch", "/checkpoints/scores", "s3a://user:secret@bucket/checkpoint", "--port", "0", "--host", host])
        == 0
    )
    ((app, listening),) = served
    printed = capsys.readouterr().out
    assert "watching /checkpoints/scores, s3a://***@bucket/checkpoint at http://" in printed
    assert "secret" not in printed
    assert listening.fileno() == -1  # it is closed at the end
    token = printed.partition("?token=")[2].partition("\n")[0]
    assert app.token == (token or None)
    assert (len(token) > 40) == has_token
