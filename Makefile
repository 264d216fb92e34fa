# make demo       the main job: the flights of 2013 as a stream
# make quick      what to run before each commit: linters, types, all tests without Spark with few examples, a Spark test per runner
# make test       everything that CI checks
# make test-deep  all transcripts on Spark, the matrix of types against Spark's own aggregates, then a search for counterexamples, BUDGET=600 of it
# make test-sinks  bm.sinks on real servers: PostgreSQL, a Kafka broker, Delta, Iceberg; queries are killed and started again
# make kafka-demo  examples/kafka_to_postgres with a Kafka broker and PostgreSQL on loopback: CLICKS=3000, killed three times, compared with a batch; SEED=
# make test-kafka  the same query under faults: broker and database restarted, topic truncated and recreated, poison batches, a set clock
# make test-long  the same query at a steady rate for MINUTES=60, RATE=20 clicks per second, a fault every two minutes: equal to a batch? drawn; SEED=
# make test-cluster  a standalone Spark cluster, a network namespace per machine: beamish shipped in each way;
#                 CLUSTER_VERSIONS="4.2 4.3"; half an hour and more
# make test-s3    a query with its checkpoint on an object store: killed, inspected, migrated, and the store failing and slow
# make test-peers  drawn cases on other implementations, PEERS="beam beam_python flink flink_over flink_sql kafka_sliding kafka_streams spark spark_over", CASES=2000 of each, SEED=... again: the same output, or a decided difference?
# make drill      kill queries with SIGKILL at drawn moments, for BUDGET=600 seconds: the same rows as if never killed? SEED=... again; then as long
#                 delete, lock and restore their tables and checkpoints: right, or refused?
# make soak       the search of test-deep without Spark for BUDGET=600 seconds, days if you like, in PROCESSES=1
# make docs       the pages as a site, in build/site; a link that leads nowhere is an error
# make gallery    the figures of "Streaming Systems", run and drawn: build/gallery/index.html
# make test-pictures  timelines and the page of `watch` in headless Chromium (Debian's chromium and chromium-driver): played, looked at, screenshots
# make mutate     change the code a little, SAMPLE=300 times: does a test fail?
# make test-versions  Spark tests of VERSION_TESTS, fresh processes that read checkpoints, and checkpoints that go on, from PySpark 4.0 to 4.3, Python 3.11 to 3.13 (VERSIONS); half an hour
# make weeks      50 million rows (ROWS, BATCHES=500), 3,000 small batches (ONCE_BATCHES): memory, checkpoint, batch time, drawn; half an hour
# make archive  the classes of Spark in .venv/spark.jsa, written in a minute: a session of the tests then starts in half the time
# make audit      known vulnerabilities of all packages that are installed, by pip-audit
# make bench      events per second and the time of a first run, beside Spark's own aggregate
# make nexmark   the queries of Nexmark on SYSTEMS="beamish spark flink", QUERIES="q4 q5 ...", in turns: EVENTS=10000000, ROUNDS=3, SEED=, RESUME=1
# make nexmark-check  their answers on 200,000 events: those of plain Python?
# make bench-latency  milliseconds from a row's creation to its pane, and from a window's end, at rising RATES, EACH=600 seconds, beside Spark's own; KAFKA=1: from a topic to another one
# make scale     ROWS=300000000 over KEYS=30000000, as the state grows: rate, memory; killed, restarted, inspected, migrated; beside Spark's own
# make bench-others  Bytewax on the same rows, in an environment of its own
# make clean      remove what these made, the virtual environment too
#
# Each makes its own virtual environment in .venv, and installs again only when pyproject.toml or constraints.txt changed. Under Python 3.11
# it takes the versions of constraints.txt; PINS= takes what pyproject.toml allows, as with other Pythons, test-versions and bench-others.

.DEFAULT_GOAL := help
.PHONY: help machine demo gallery docs quick lint mypy style test archive test-deep test-sinks test-versions test-pictures drill soak mutate weeks audit \
	bench bench-others bench-latency scale nexmark nexmark-check kafka-demo test-kafka test-long test-cluster test-s3 test-peers clean

BUDGET ?= 600
CLICKS ?= 3000
MINUTES ?= 60
RATE ?= 20
# The newest PySpark whose Kafka connector is in Maven Central.
KAFKA_PYSPARK ?= 4.2.0
SAMPLE ?= 300
PROCESSES ?= 1
PINS ?= constraints.txt
CLUSTER_VERSIONS ?= 4.2 4.3
PEERS ?= beam beam_python flink flink_over flink_sql kafka_sliding kafka_streams spark spark_over
CASES ?= 2000
ROWS ?= 50000000
BATCHES ?= 500
EVENTS ?= 10000000
ROUNDS ?= 3
SYSTEMS ?= beamish spark flink
RATES ?= 1000 10000 50000 100000 150000 200000 300000 400000 600000
EACH ?= 600
KEYS ?= 30000000
ONCE_BATCHES ?= 3000
VERSIONS ?= 4.0:3.11 4.1:3.12 4.2:3.13 4.3:3.11
# A part of them, since all take long: what a DataFrame becomes, streams, restarts, chains, and a transcript of each file.
VERSION_TESTS ?= $(foreach of,batch stream checkpoint chain transcripts,tests/spark/test_$(of).py)
VENV := .venv
BIN := $(VENV)/bin

# Spark's workers must run the Python of .venv, and Spark itself must be the one installed there.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export SPARK_LOCAL_IP ?= 127.0.0.1
unexport SPARK_HOME PYTHONPATH PYTHONHOME
# Spark starts many Python processes: each would compile beamish anew.
unexport PYTHONDONTWRITEBYTECODE

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

# Java and Python are looked for before anything else is done.
machine:
	@sh tools/find_java.sh >/dev/null
	@$(BIN)/python -c '' 2>/dev/null || sh tools/find_python.sh >/dev/null

# What reads the tree itself, such as mypy, finds these packages by links, which an archive may not hold.
define link
	@test -d beamish/$(1)/ || ln -sfn ../$(1) beamish/$(1)
endef

define install
	$(call link,triggers)
	$(call link,accumulations)
	@$(BIN)/python -c '' 2>/dev/null || { \
		python=$$(sh tools/find_python.sh) && echo "making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV); }
	@echo "installing beamish[$(1)] into $(VENV)$(if $(filter docs plot,$(1)),, (Spark is 450 MB: this takes a minute or more, once))"
	@pins="$(PINS)"; $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || pins=""; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $${pins:+--constraint "$$pins"} --editable ".[$(1)]"
	@touch $@
endef

$(VENV)/installed-demo: pyproject.toml $(PINS) | machine
	$(call install,demo)

$(VENV)/installed-proof: pyproject.toml $(PINS) | machine
	$(call install,proof)

$(VENV)/installed-docs: pyproject.toml $(PINS)
	$(call install,docs)

$(VENV)/installed-plot: pyproject.toml $(PINS)
	$(call install,plot)

$(VENV)/installed-pictures: pyproject.toml $(PINS) | machine
	$(call install,pictures)
	@touch $(VENV)/installed-dev

$(VENV)/installed-dev: pyproject.toml $(PINS) | machine
	$(call install,dev)
	@touch $(VENV)/installed-demo $(VENV)/installed-docs $(VENV)/installed-plot

demo: $(VENV)/installed-demo
	@JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python examples/flights.py

# mypy takes as long as the others together.
lint: $(VENV)/installed-dev
	@$(MAKE) --no-print-directory -j 2 mypy style

mypy: $(VENV)/installed-dev
	$(BIN)/mypy

style: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/basedpyright --pythonpath $(BIN)/python

quick: lint
	JAVA_HOME="$$(sh tools/find_java.sh)" HYPOTHESIS_PROFILE=quick \
		$(BIN)/python -m pytest -n 2 --dist loadgroup --durations 10 -m "not (spark or dear) or smoke"

test: $(VENV)/installed-dev
	@$(MAKE) --no-print-directory -j 2 mypy style docs
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m pytest -n 2 --dist loadgroup --durations 10

archive: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m tests.warm.archive

test-deep: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" BEAMISH_DEEP_SECONDS=$(BUDGET) \
		$(BIN)/python -m pytest -n 2 --dist loadgroup -m "deep or law"

test-sinks: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" BEAMISH_SERVERS=1 $(BIN)/python -m pytest -n 0 -m servers

build/kafka/installed: pyproject.toml | machine
	python=$$(sh tools/find_python.sh) && "$$python" -m venv --clear build/kafka/venv
	build/kafka/venv/bin/python -m pip install --quiet --disable-pip-version-check "pyspark[sql,connect]==$(KAFKA_PYSPARK)" \
		--editable ".[demo,plot,postgresql,prometheus]" confluent-kafka hypothesis pytest pytest-xdist pyyaml
	@touch $@

kafka-demo test-kafka test-long $(if $(KAFKA),bench-latency): export PYSPARK_PYTHON := $(CURDIR)/build/kafka/venv/bin/python

kafka-demo: build/kafka/installed
	@JAVA_HOME="$$(sh tools/find_java.sh)" $(PYSPARK_PYTHON) -m examples.kafka_to_postgres.demo --clicks $(CLICKS) $(if $(SEED),--seed $(SEED))

test-kafka: build/kafka/installed
	JAVA_HOME="$$(sh tools/find_java.sh)" BEAMISH_KAFKA=1 $(PYSPARK_PYTHON) -m pytest -n 0 --durations 0 -rA -m kafka tests/servers

test-long: build/kafka/installed
	@JAVA_HOME="$$(sh tools/find_java.sh)" $(PYSPARK_PYTHON) -m tools.long_run \
		--minutes $(MINUTES) --rate $(RATE) $(if $(SEED),--seed $(SEED))

# The Python of the cluster and its drivers has all but beamish.
build/cluster/%/installed: | machine
	python=$$(sh tools/find_python.sh) && "$$python" -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check "pyspark[sql,connect]==$*.*" attrs "numpy<2.5" "pandas>=2.2,<3" \
		"pyarrow>=18" protobuf venv-pack adbc-driver-manager adbc-driver-postgresql prometheus-client
	@touch $@

test-cluster: $(VENV)/installed-dev build/kafka/installed $(CLUSTER_VERSIONS:%=build/cluster/%/installed)
	JAVA_HOME="$$(sh tools/find_java.sh)" BEAMISH_CLUSTER="$(CLUSTER_VERSIONS)" \
		$(BIN)/python -m pytest -n 0 --durations 0 -rA -m cluster tests/cluster

test-s3: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" BEAMISH_S3=1 $(BIN)/python -m pytest -n 0 --durations 0 -rA -m s3 tests/s3

# The jars of a peer come from Maven Central; its program is one file.
build/peers/%/built: peers/%/pom.xml peers/%/Peer.java
	@rm -rf $(@D)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)/lib
	"$$(sh tools/find_java.sh)/bin/javac" --release 17 -proc:none -d $(@D)/classes -cp "$(@D)/lib/*" $(word 2,$^)
	@touch $@

# Beam Python has an environment of its own: it takes earlier versions of protobuf and pyarrow.
build/peers/beam_python/built: peers/beam_python/requirements.txt pyproject.toml | machine
	python=$$(sh tools/find_python.sh) && "$$python" -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $< --editable ".[beam]"
	@touch $@

# Spark's own operators need nothing more; nor do peers that share a program.
build/peers/flink_over/built build/peers/flink_sql/built: build/peers/flink/built
build/peers/kafka_sliding/built: build/peers/kafka_streams/built
build/peers/flink_over/built build/peers/flink_sql/built build/peers/kafka_sliding/built build/peers/spark/built build/peers/spark_over/built:
	@mkdir -p $(@D)
	@touch $@

test-peers: $(VENV)/installed-dev $(PEERS:%=build/peers/%/built)
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m peers.compare $(PEERS) --cases $(CASES) $(if $(SEED),--seed $(SEED))

drill: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m tools.drill --budget $(BUDGET) $(if $(SEED),--seed $(SEED))
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m tools.mishaps --budget $(BUDGET) $(if $(SEED),--seed $(SEED))

soak: $(VENV)/installed-dev
	$(BIN)/python -m tools.soak --budget $(BUDGET) --processes $(PROCESSES) $(if $(SEED),--seed $(SEED))

test-versions: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python tools/versions.py --versions $(VERSIONS) --tests $(VERSION_TESTS)

docs: $(VENV)/installed-docs
	$(BIN)/python tools/site.py
	$(BIN)/zensical build --strict

gallery: $(VENV)/installed-plot
	$(BIN)/python examples/gallery.py build/gallery

test-pictures: $(VENV)/installed-pictures
	BEAMISH_BROWSER=1 $(BIN)/python -m pytest -n 0 -m browser

mutate: $(VENV)/installed-proof
	$(BIN)/python tools/mutate.py --sample $(SAMPLE)

weeks: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python benchmarks/weeks.py live --rows $(ROWS) --batches $(BATCHES) --keys 20000 --kept 100 --plot docs/pictures; \
	live=$$?; JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python benchmarks/weeks.py once --rows $$((200 * $(ONCE_BATCHES))) --batches $(ONCE_BATCHES) --kept 60 --plot docs/pictures && exit $$live

# pip-audit is in an environment of its own: what it needs is no part of what it looks at.
audit: $(VENV)/installed-dev
	@test -x build/audit/bin/pip-audit || { $(BIN)/python -m venv build/audit && build/audit/bin/python -m pip install --quiet pip-audit; }
	build/audit/bin/pip-audit --strict --skip-editable --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

bench: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python benchmarks/run.py
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python benchmarks/first_result.py

# Hadoop's classes, which Flink's reader of Parquet files needs, are in PySpark.
build/nexmark-flink/built: benchmarks/nexmark/flink/pom.xml benchmarks/nexmark/flink/Nexmark.java | $(VENV)/installed-dev
	@rm -rf $(@D)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)/lib
	"$$(sh tools/find_java.sh)/bin/javac" --release 17 -proc:none -d $(@D)/classes \
		-cp "$(@D)/lib/*:$$($(BIN)/python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')/jars/*" $(word 2,$^)
	@touch $@

NEXMARK_FLINK := $(if $(findstring flink,$(SYSTEMS)),build/nexmark-flink/built)

nexmark: $(VENV)/installed-dev $(NEXMARK_FLINK)
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m benchmarks.nexmark.run --events $(EVENTS) --systems "$(SYSTEMS)" --rounds $(ROUNDS) \
		$(if $(QUERIES),--queries "$(QUERIES)") $(if $(SEED),--seed $(SEED)) $(if $(RESUME),--resume)

nexmark-check: $(VENV)/installed-dev $(NEXMARK_FLINK)
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python -m benchmarks.nexmark.run --check --systems "$(SYSTEMS)" $(if $(QUERIES),--queries "$(QUERIES)") \
		$(if $(SEED),--seed $(SEED))

bench-latency: $(if $(KAFKA),build/kafka/installed,$(VENV)/installed-dev)
	JAVA_HOME="$$(sh tools/find_java.sh)" $(PYSPARK_PYTHON) benchmarks/latency.py --rates "$(RATES)" --seconds $(EACH) $(if $(KAFKA),--kafka)

scale: ROWS = 300000000
scale: $(VENV)/installed-dev
	JAVA_HOME="$$(sh tools/find_java.sh)" $(BIN)/python benchmarks/scale.py --rows $(ROWS) --keys $(KEYS)

bench-others:
	@sh benchmarks/others/run.sh "$$(sh tools/find_python.sh)"

clean:
	rm -rf $(VENV) .cache build dist mutants.jsonl *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .grimp_cache .import_linter_cache \
		spark-warehouse artifacts derby.log metastore_db flights.db
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
