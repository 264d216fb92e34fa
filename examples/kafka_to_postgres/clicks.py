"""Send drawn clicks to the topic at a steady rate, until it is stopped; deploy/compose starts it.

    python -m examples.kafka_to_postgres.clicks --broker localhost:9092 [--per-second 20] [--seconds 60]

A second of the clock is a minute of the clicks, so that visits end soon.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

from tools.servers import topics

_FASTER, _USERS = 60, 50


def of_second(draw: random.Random, now: datetime, rows: int) -> Iterator[tuple[str, str]]:
    """The clicks of a second: of 100 five are up to 20 minutes late, one is malformed. A user clicks in one of three hours."""
    active = range(int(now.timestamp()) // 3600 % 3, _USERS, 3)
    for _ in range(rows):
        late = timedelta(minutes=draw.uniform(0, 20) if draw.random() < 0.05 else 0)
        user = f"user {draw.choice(active)}"
        click = json.dumps({"user": user, "ts": (now - late).isoformat(), "spent": draw.randrange(100)})
        yield user, click[:20] if draw.random() < 0.01 else click


def main() -> None:
    """Create the topics, and send."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--broker", required=True)
    parser.add_argument("--per-second", type=int, default=20)
    parser.add_argument("--seconds", type=int, help="end after that many")
    said = parser.parse_args()
    for topic, cleanup in (("clicks", "delete"), ("visits", "compact")):
        topics.create(said.broker, topic, cleanup=cleanup, unless_exists=True)
    draw, begin = random.Random(), datetime.now(UTC)  # noqa: S311 - sample rows
    for second in count() if said.seconds is None else range(said.seconds):
        topics.send(
            said.broker, "clicks", of_second(draw, begin + timedelta(seconds=second * _FASTER), said.per_second)
        )
        time.sleep(1)


if __name__ == "__main__":
    main()
