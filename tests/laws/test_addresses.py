"""Secrets in addresses and options never show: not in a message, a repr or a chained exception."""

from __future__ import annotations

import os
import re
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.addresses import printable, without_secrets
from beamish.testing import TestStream

WORDS = ("Xq7w", "Zk9v")
"""A secret is these words with something between them; neither may show."""

between = st.sampled_from([*"%@/:?#&= ;,'\"\\$!\n\0", "%41", "%2F", "%zz", "%", "\udc80", "é", "", "//", "@@"])
secrets = st.one_of(
    between.map(lambda mark: mark.join(WORDS)), between.map(lambda mark: quote(mark.join(WORDS), "", errors="replace"))
)
hosts = st.sampled_from(
    ["127.0.0.1:1", "127.0.0.1:99999", "[::1]:1", "[::1", "127.0.0.1:x", "", ":", "127.0.0.1:1,[::1]:1", "a b"]
)
schemes = st.sampled_from(
    ["postgresql", "POSTGRESQL", "Postgres", "duckdb", "sqlite", "SQLite", "s3a", "jdbc:postgresql", ""]
)
forms = st.sampled_from(
    [
        "{scheme}://ann:{secret}@{host}/db",
        "{scheme}://:{secret}@{host}",
        "{scheme}://{host}/db?x=1&password={secret}",
        "{scheme}:///md:db?motherduck_token={secret}",
        "{scheme}:////nowhere/db?sslPassword={secret}#1",
        "{scheme}:///ann:{secret}@{host}/db",
        "{scheme}:ann:{secret}@{host}/db",
        "{scheme}:/ann:{secret}@{host}",
        "//ann:{secret}@{host}/db",
        "ann:{secret}@{host}/db",
        "host={host} user=ann password={secret}",
        'required username="ann" password="{secret}";',
    ]
)  # fmt: skip
addresses = st.builds(
    lambda form, scheme, secret, host: (form.format(scheme=scheme, secret=secret, host=host), secret),
    forms,
    schemes,
    secrets,
    hosts,
)
wrapped: st.SearchStrategy[Callable[[str], Any]] = st.sampled_from(
    [
        lambda text: (text,),
        lambda text: [[text]],
        lambda text: {text: text},
        lambda text: frozenset([text]),
        lambda text: text.encode(errors="replace"),
        Path,
        lambda text: SimpleNamespace(address=text),
        lambda text: {"kafka.ssl.truststore.password": text.rpartition("://")[2]},
    ]
)
SESSION: Any = SimpleNamespace(read=None, createDataFrame=None)
PIPELINE = bm.Pipeline().key_by("k").accumulate(n=bm.accumulations.Count())
SQL = bm.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
API: Any = bm
"""Called with values of wrong types."""
CALLS: list[Callable[[Any], Any]] = [
    lambda value: API.sinks.sql(value, "totals"),
    lambda value: API.sinks.sql("totals", value),
    lambda value: API.sinks.sql("sqlite:///a.db", "totals", keys=[[value]]),
    lambda value: API.sinks.sql("sqlite:///a.db", "totals", fields=value),
    lambda value: API.sinks.sql("sqlite:///a.db", "totals", create=value),
    API.sinks.merge,
    lambda value: API.sinks.merge("totals", create=value),
    lambda value: API.sinks.kafka(value, "totals"),
    lambda value: API.sinks.kafka("broker:9092", value),
    lambda value: API.sinks.kafka("broker:9092", "totals", key_format=value),
    lambda value: API.sinks.kafka("broker:9092", "totals", options=value),
    lambda value: API.sinks.kafka("broker:9092", "totals", options={"kafka.sasl.jaas.config": value}),
    lambda value: API.inspect(value, "/checkpoint"),
    lambda value: API.inspect(SESSION, (value,)),
    lambda value: API.check_upgrade(value, "/checkpoint", PIPELINE),
    lambda value: API.check_upgrade(SESSION, "/checkpoint", value),
    lambda value: API.check_upgrade(SESSION, [value], PIPELINE),
    lambda value: API.migrate(SESSION, value, "/new", PIPELINE),
    lambda value: API.migrate(SESSION, "/checkpoint", value, PIPELINE),
    API.Pipeline().state,
    lambda value: API.Pipeline().state(TestStream(), value),
    lambda value: API.VersionedTable("1 day", path=[value]),
    lambda value: API.Listener(port=value),
    API.changelog,
    API.panes,
    PIPELINE.apply,
    SQL.apply,
    lambda value: TestStream().trace_on_spark(value, PIPELINE),
]


@given(addresses, st.one_of(st.just(lambda text: text), wrapped))
def test_a_secret_never_shows_in_a_message_or_repr(address, wrap):
    for call in CALLS:
        assert_hidden(words_of(partial(call, wrap(address[0]))))


@given(addresses)
def test_a_secret_never_shows_when_connecting_fails(address):
    def connect() -> None:
        with bm.sinks.sql(address[0], "totals").database.transaction() as cursor:
            cursor.execute("SELECT * FROM nowhere")

    assert_hidden(words_of(connect))


@given(addresses, st.integers(0, 9), st.booleans())
def test_a_secret_never_shows_in_a_message_of_a_driver(address, cut, whole):
    pieces = re.split(r"(?=[@:/?#&=])", address[0])
    repeated = address[0] if whole else pieces[cut % len(pieces)]
    for text in (repeated, unquote(repeated)):
        said = f'IO: [libpq] Failed to connect: invalid token: "{text}"\n'
        assert_hidden([without_secrets(said, address[0])])


@given(st.recursive(st.one_of(addresses.map(itemgetter(0)), st.binary(), st.none()), st.lists))
def test_printing_an_option_never_raises_and_never_shows_a_secret(value):
    assert_hidden([printable(value)])


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://h1:1,h2/db",
        "sqlite:////a/b c.db",
        "s3a://bucket/day=1/x",
        "/home/a@b/x",
        "C:\\x",
        "broker:9092,b2:9092",
        "stats.hourly",
        "delta.`/a/b`",
        "delta.`s3a://bucket/x`",
        "",
    ],
)
def test_addresses_without_secrets_are_shown_unchanged(text):
    assert printable(text) == repr(text)
    assert without_secrets(f"no {text}", text) == f"no {text}"


def test_scheme_host_and_path_are_shown():
    uri = "postgresql://ann:secret@h:5432/db?sslmode=require"
    assert printable((uri,)) == "('postgresql://***@h:5432/db?***',)"
    assert without_secrets(f'missing "=" after "{uri}"', uri) == f'missing "=" after "{uri.replace("secret", "***")}"'


def test_a_repr_that_raises_or_never_ends_is_the_name_of_its_type():
    class Raises:
        def __repr__(self) -> str:
            raise KeyError

    endless: list[Any] = []
    endless.append(endless)
    assert (printable(Raises()), printable(endless)) == ("<Raises>", "<list>")


@pytest.mark.parametrize(
    "uri", ["postgresql://ann:p%t@h/db", "postgresql://ann:p@ss@h/db", "postgresql:h", "postgresql://[::1/db"]
)
def test_a_malformed_postgresql_uri_is_refused_at_once(uri):
    with pytest.raises(bm.errors.OptionError, match="percent-encode"):
        bm.sinks.sql(uri, "totals")


@pytest.fixture(autouse=True, scope="module")
def somewhere_else() -> Iterator[None]:
    """A folder for the files that some addresses name."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        yield
        os.chdir(before)


def words_of(call: Callable[[], Any]) -> list[str]:
    """All that a call says: of its result, or of what it raises and of what that was raised from."""
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - whatever is raised may say it
        chain: list[BaseException] = [error]
        while cause := chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__):
            chain.append(cause)
        return [*traceback.format_exception(error), *map(repr, chain), *(repr(one.args) for one in chain)]
    return [repr(result), str(result)]


def assert_hidden(words: list[str]) -> None:
    assert not [text for text in words if any(word in text for word in WORDS)]
