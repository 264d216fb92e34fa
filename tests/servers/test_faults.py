"""examples/kafka_to_postgres while broker, topic and database fail at drawn moments: the same tables as by a batch computation.

BEAMISH_KAFKA_SEED= draws the same moments again. The query is restarted where it stops, as a supervisor would.
"""

import os
import random
import signal
import tempfile
import time
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from kafka_to_postgres import demo
from tests.servers import poison
from tests.servers.proxy import Proxy
from tests.servers.started import started
from tools.servers import topics
from tools.servers.disk import small_disk
from tools.servers.kafka import Broker
from tools.servers.postgresql import PostgreSql
from tools.servers.server import UnavailableError

pytestmark = [pytest.mark.kafka, pytest.mark.filterwarnings("ignore::ResourceWarning")]

CLICKS, BATCH = 1200, 100
SEED = int(os.environ.get("BEAMISH_KAFKA_SEED", random.SystemRandom().randrange(1_000_000)))
DAY = timedelta(days=1)


@pytest.fixture
def draw(request):
    print(f"BEAMISH_KAFKA_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def disk():
    """Mounts small disks, by folder and megabytes."""
    with ExitStack() as opened:

        def mount(folder, megabytes):
            try:
                return opened.enter_context(small_disk(folder, megabytes))
            except UnavailableError as why:
                pytest.skip(str(why))

        yield mount


@pytest.fixture
def broker():
    one = Broker()
    yield one
    one.stop()


@pytest.fixture
def postgresql():
    return started(PostgreSql)


@pytest.fixture
def run(broker, postgresql, draw, tmp_path):
    with query(broker, postgresql, draw, tmp_path) as run:
        yield run


@contextmanager
def query(broker, postgresql, draw, folder):
    """The query, with clicks in its topic."""
    with postgresql.database() as database:
        run = demo.Run(broker.address, database, folder, maxOffsetsPerTrigger=BATCH)
        topics.send(broker.address, "clicks", demo.drawn(draw, CLICKS))
        yield run


def inject(run, draw, fault):
    """Run the query to its end, with three faults at drawn moments."""
    process = run.start("--available-now")
    for _ in range(3):
        run.wait(process, run.batches() + draw.randrange(1, 3))
        time.sleep(draw.uniform(0, 2))
        fault()
        if process.poll() is not None:
            process = run.start("--available-now")
    if process.wait(300):
        run.finish(tries=3)


def drain(run, process, clicks):
    """Wait until a running query has read all clicks, and has committed."""
    until = time.monotonic() + 300
    while run.batches() == 0 or sum(run.processed().values()) < clicks or not committed(run):
        assert process.poll() is None, run.said()
        assert time.monotonic() < until, run.said()
        time.sleep(0.1)


def committed(run):
    return (run.folder / "checkpoint" / "commits" / str(run.batches() - 1)).exists()


def test_a_broker_restarts(run, broker, draw):
    def restart():
        broker.stop(draw.choice([signal.SIGTERM, signal.SIGKILL]))
        time.sleep(draw.uniform(0, 3))
        broker.start()

    inject(run, draw, restart)
    assert run.problems(run.clicks()) == []


def test_a_database_restarts_in_a_batch(run, postgresql, draw):
    def restart():
        postgresql.stop(draw.choice([signal.SIGINT, signal.SIGQUIT]))
        time.sleep(draw.uniform(0, 3))
        postgresql.start()

    inject(run, draw, restart)
    assert run.problems(run.clicks()) == []


def test_a_connection_is_cut_after_commit(run, postgresql, draw):
    direct = run.database
    with Proxy(postgresql.port, cut={draw.randrange(start, start + 6) for start in (2, 8, 14)}) as proxy:
        run.database = direct.replace(f":{postgresql.port}/", f":{proxy.port}/")
        run.finish(tries=4)
    run.database = direct
    assert proxy.cuts == 3
    assert run.problems(run.clicks()) == []


def fill(disk, draw, left=100_000):
    """Leave less space than a batch needs, at most ``left`` bytes, for some seconds."""
    disk.fill(left=draw.randrange(left))
    time.sleep(draw.uniform(5, 15))
    disk.free()


def test_the_disk_of_the_checkpoint_is_full(broker, postgresql, draw, disk, tmp_path):
    full = disk(tmp_path / "checkpoint", 64)
    with query(broker, postgresql, draw, tmp_path) as run:
        inject(run, draw, lambda: fill(full, draw))
        assert "No space left on device" in run.log.read_text()
        assert run.problems(run.clicks()) == []


def test_the_disk_of_rocksdb_is_full(run, draw, disk, tmp_path, monkeypatch):
    full = disk(tmp_path / "local", 256)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(full.folder))
    inject(run, draw, lambda: fill(full, draw))
    assert "No space left on device" in run.log.read_text()
    assert run.problems(run.clicks()) == []


def test_the_disk_of_the_database_is_full(broker, draw, disk, tmp_path):
    full = disk(Path(tempfile.mkdtemp(prefix="beamish-disk-")), 256)  # PostgreSQL's user reaches it
    postgresql = PostgreSql(full.folder)

    def fault():
        fill(full, draw, left=4096)
        if postgresql.process.poll() is not None:
            postgresql.start()

    with query(broker, postgresql, draw, tmp_path) as run:
        inject(run, draw, fault)
        assert "No space left on device" in (postgresql.folder / "log").read_text()
        assert run.problems(run.clicks()) == []
    postgresql.stop()


def test_partitions_are_added(run, broker, draw):
    """A new partition is read from its start."""
    process, client = run.start(), AdminClient({"bootstrap.servers": broker.address})
    for added in range(3):
        drain(run, process, CLICKS + added * BATCH)
        time.sleep(draw.uniform(0, 2))
        client.create_partitions([NewPartitions("clicks", 3 + added)])["clicks"].result(60)
        topics.send(broker.address, "clicks", demo.drawn(draw, BATCH, demo.BEGIN + (1 + added) * DAY))
    drain(run, process, CLICKS + 3 * BATCH)
    demo.kill(process)
    run.finish()
    clicks = run.clicks()
    assert {click.partition for click in clicks} == set(range(5))
    assert run.problems(clicks) == []


def test_a_topic_is_truncated(run, broker, draw):
    """With failOnDataLoss the query stops, and its tables are right; without it the query omits the deleted clicks.

    Killed before, since consumers have read ahead.
    """
    process, clicks = run.start(), run.clicks()
    assert run.wait(process, draw.randrange(2, 6))
    time.sleep(draw.uniform(0, 2))
    demo.kill(process)
    first = {partition: end + BATCH for partition, end in run.processed().items()}
    at = [TopicPartition("clicks", number, offset) for number, offset in first.items()]
    client = AdminClient({"bootstrap.servers": broker.address})
    for done in client.delete_records(at).values():
        done.result(60)
    assert run.start().wait(300) != 0
    assert "failOnDataLoss" in run.log.read_text()
    assert run.start("--available-now").wait(300) != 0
    end = run.processed(committed=True)
    assert run.problems([click for click in clicks if click.offset < end[click.partition]]) == []
    run.options["failOnDataLoss"] = False
    run.finish()
    kept = [click for click in clicks if click.offset < end[click.partition] or click.offset >= first[click.partition]]
    assert len(kept) < len(clicks)
    assert run.problems(kept) == []


def test_a_topic_is_recreated(run, broker, draw):
    process, clicks = run.start(), run.clicks()
    drain(run, process, CLICKS)
    time.sleep(draw.uniform(0, 2))
    client = AdminClient({"bootstrap.servers": broker.address})
    client.delete_topics(["clicks"])["clicks"].result(60)
    time.sleep(1)
    topics.create(broker.address, "clicks", cleanup="delete")
    topics.send(broker.address, "clicks", demo.drawn(draw, BATCH, demo.BEGIN + DAY))
    assert process.wait(300) != 0
    assert "Some data may have been lost" in run.log.read_text()
    assert run.problems(clicks) == []


def test_poison_batches(run, broker, draw):
    """One key of 100,000 clicks, a million new keys, 10,000 clicks of windows long closed, and a record of 50 MB."""
    run.finish()
    for number, drawn in enumerate((poison.one_key, poison.new_keys, poison.late, poison.huge), start=1):
        topics.send(broker.address, "clicks", drawn(draw, demo.BEGIN + (1 + number) * DAY))
        run.options["maxOffsetsPerTrigger"] = 2_000_000
        run.finish()
    clicks = run.clicks()
    assert len(clicks) > 1_100_000
    assert run.problems(clicks) == []
