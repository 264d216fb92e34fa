import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/** Runs cases on Kafka Streams' TopologyTestDriver: a case per line of stdin, its answer per line of stdout (peers/README.md). */
public final class Peer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Serde<String> TEXT = Serdes.String();

  /** The rows of the running case, and the number of its step. */
  private static ArrayNode output;

  private static int step;

  public static void main(String[] arguments) throws Exception {
    BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Path folder = Files.createTempDirectory("kafka-streams-peer");
    Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder)));
    for (String line = cases.readLine(); line != null; line = cases.readLine()) {
      answers.println(answer(JSON.readTree(line), folder));
    }
  }

  private static ObjectNode answer(JsonNode given, Path folder) {
    ObjectNode answer = JSON.createObjectNode();
    answer.set("id", given.get("id"));
    output = answer.putArray("rows");
    step = 0;
    try {
      run(given, folder.toFile());
    } catch (Exception | AssertionError error) {
      answer.put("failed", error.toString());
    }
    return answer;
  }

  private static void run(JsonNode given, File folder) {
    StreamsBuilder builder = new StreamsBuilder();
    switch (given.get("kind").asText()) {
      case "versions" -> versions(builder, given);
      case "as_of" -> asOf(builder, given);
      case "join" -> join(builder, given);
      default -> windows(builder, given);
    }
    TopologyTestDriver driver = new TopologyTestDriver(builder.build(), options(folder), Instant.EPOCH);
    boolean runs = true;
    try {
      Map<String, TestInputTopic<String, String>> inputs = new HashMap<>();
      for (String name : given.get("inputs").findValuesAsText("name")) {
        inputs.put(name, driver.createInputTopic(name, new StringSerializer(), new StringSerializer()));
      }
      for (JsonNode event : given.get("script")) {
        for (JsonNode row : event.get("rows")) {
          String value = row.path("gone").asBoolean() ? null : row.get("n").asText();
          inputs.get(row.get("input").asText()).pipeInput(row.get("key").asText(), value, millis(row.get("ts")));
        }
        step++;
      }
      if (given.has("reads")) {
        read(driver, given.get("reads"));
      }
    } catch (StreamsException full) {
      if (full.getCause() == null || !full.getCause().getMessage().contains("buffer exceeded its max capacity")) {
        throw full;
      }
      runs = false;
      output.addObject().put("step", step).put("full", true);
    } finally {
      close(driver, runs);
    }
  }

  private static void close(TopologyTestDriver driver, boolean runs) {
    try {
      driver.close();
    } catch (RuntimeException error) {
      if (runs) {
        throw error;
      }
    }
  }

  private static Properties options(File folder) {
    Properties options = new Properties();
    options.put(StreamsConfig.APPLICATION_ID_CONFIG, "peer");
    options.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
    options.put(StreamsConfig.STATE_DIR_CONFIG, folder.getPath());
    options.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    options.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    options.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    options.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
    // Rows that time has made final are emitted with each record, not once a second of the machine's clock.
    options.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
    options.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
    return options;
  }

  private static void windows(StreamsBuilder builder, JsonNode given) {
    KGroupedStream<String, String> rows = builder.<String, String>stream("rows").groupByKey();
    JsonNode window = given.get("window");
    Duration grace = duration(given.get("grace"));
    EmitStrategy emit =
        given.get("kind").asText().equals("on_close") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
    KTable<Windowed<String>, String> table =
        switch (window.get("is").asText()) {
          case "Sessions" -> rows.windowedBy(SessionWindows.ofInactivityGapAndGrace(duration(window.get("gap")), grace))
              .emitStrategy(emit)
              .aggregate(() -> "", (key, row, all) -> and(all, row), (key, one, other) -> and(one, other), store(given));
          case "FixedWindows" -> rows.windowedBy(TimeWindows.ofSizeAndGrace(duration(window.get("size")), grace))
              .emitStrategy(emit)
              .aggregate(() -> "", (key, row, all) -> and(all, row), store(given));
          case "AnchoredWindows" -> rows.windowedBy(
                  SlidingWindows.ofTimeDifferenceAndGrace(duration(window.get("difference")), grace))
              .emitStrategy(emit)
              .aggregate(() -> "", (key, row, all) -> and(all, row), store(given));
          default -> rows.windowedBy(
                  TimeWindows.ofSizeAndGrace(duration(window.get("size")), grace).advanceBy(duration(window.get("period"))))
              .emitStrategy(emit)
              .aggregate(() -> "", (key, row, all) -> and(all, row), store(given));
        };
    switch (given.get("kind").asText()) {
      case "closes" -> table = table.suppress(Suppressed.untilWindowCloses(strict(given)));
      case "limit" -> table = table.suppress(Suppressed.untilTimeLimit(duration(given.get("wait")), eager(given)));
      default -> {}
    }
    table.toStream().foreach(Peer::writePane);
  }

  /** The store of windows; those emitted when they close stay for 30 days: by default closing records evict them. */
  private static <S extends StateStore> Materialized<String, String, S> store(JsonNode given) {
    Materialized<String, String, S> store = Materialized.with(TEXT, TEXT);
    return given.get("kind").asText().equals("on_close") ? store.withRetention(Duration.ofDays(30)) : store;
  }

  private static String and(String some, String others) {
    return some.isEmpty() ? others : some + "," + others;
  }

  private static void writePane(Windowed<String> key, String rows) {
    ObjectNode row = output.addObject().put("step", step).put("key", key.key());
    row.put("start", key.window().start()).put("end", key.window().end());
    numbers(row, rows);
  }

  private static void numbers(ObjectNode row, String rows) {
    if (rows == null) {
      row.putNull("rows");
      return;
    }
    ArrayNode values = row.putArray("rows");
    for (String one : rows.split(",")) {
      values.add(Integer.parseInt(one));
    }
  }

  private static Suppressed.StrictBufferConfig strict(JsonNode given) {
    JsonNode most = given.get("max_records");
    return most.isNull()
        ? Suppressed.BufferConfig.unbounded()
        : Suppressed.BufferConfig.maxRecords(most.asLong()).shutDownWhenFull();
  }

  @SuppressWarnings({"rawtypes", "unchecked"})
  private static Suppressed.BufferConfig eager(JsonNode given) {
    return given.get("when_full").asText().equals("emit_early")
        ? Suppressed.BufferConfig.maxRecords(given.get("max_records").asLong()).emitEarlyWhenFull()
        : (Suppressed.BufferConfig) strict(given);
  }

  private static void versions(StreamsBuilder builder, JsonNode given) {
    table(builder, "rows", given);
  }

  private static KTable<String, String> table(StreamsBuilder builder, String name, JsonNode given) {
    Duration history = duration(given.get("history"));
    return builder.table(
        name,
        Consumed.with(TEXT, TEXT),
        Materialized.as(Stores.persistentVersionedKeyValueStore("versions", history)));
  }

  private static void read(TopologyTestDriver driver, JsonNode reads) {
    VersionedKeyValueStore<String, String> store = driver.getVersionedKeyValueStore("versions");
    for (JsonNode read : reads) {
      VersionedRecord<String> found = store.get(read.get("key").asText(), millis(read.get("ts")));
      ObjectNode row = output.addObject().put("key", read.get("key").asText()).put("ts", read.get("ts").asLong());
      if (found == null) {
        row.putNull("n").putNull("since");
      } else {
        row.put("n", Integer.parseInt(found.value())).put("since", found.timestamp());
      }
    }
  }

  private static void asOf(StreamsBuilder builder, JsonNode given) {
    KTable<String, String> table = table(builder, "table", given);
    Joined<String, String, String> joined = Joined.with(TEXT, TEXT, TEXT);
    if (!given.get("grace").isNull()) {
      joined = joined.withGracePeriod(duration(given.get("grace")));
    }
    KStream<String, String> rows = builder.stream("rows", Consumed.with(TEXT, TEXT));
    KStream<String, String> pairs =
        given.get("how").asText().equals("left")
            ? rows.leftJoin(table, Peer::pair, joined)
            : rows.join(table, Peer::pair, joined);
    pairs.foreach(Peer::writePair);
  }

  private static void join(StreamsBuilder builder, JsonNode given) {
    KStream<String, String> left = builder.stream("left", Consumed.with(TEXT, TEXT));
    KStream<String, String> right = builder.stream("right", Consumed.with(TEXT, TEXT));
    JoinWindows within =
        JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, duration(given.get("grace")))
            .before(duration(given.get("before")))
            .after(duration(given.get("after")));
    StreamJoined<String, String, String> joined = StreamJoined.with(TEXT, TEXT, TEXT);
    KStream<String, String> pairs =
        switch (given.get("how").asText()) {
          case "left" -> left.leftJoin(right, Peer::pair, within, joined);
          case "outer" -> left.outerJoin(right, Peer::pair, within, joined);
          default -> left.join(right, Peer::pair, within, joined);
        };
    pairs.foreach(Peer::writePair);
  }

  private static String pair(String left, String right) {
    return left + "," + right;
  }

  private static void writePair(String key, String pair) {
    ObjectNode row = output.addObject().put("step", step).put("key", key);
    String[] sides = pair.split(",");
    side(row, "left", sides[0]);
    side(row, "right", sides[1]);
  }

  private static void side(ObjectNode row, String name, String value) {
    if (value.equals("null")) {
      row.putNull(name);
    } else {
      row.put(name, Integer.parseInt(value));
    }
  }

  private static Duration duration(JsonNode micros) {
    return Duration.ofMillis(millis(micros));
  }

  private static long millis(JsonNode micros) {
    return Math.floorDiv(micros.asLong(), 1000L);
  }

  private static void delete(Path folder) {
    try (Stream<Path> paths = Files.walk(folder)) {
      paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
