import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.dag.Pipeline;
import org.apache.flink.client.deployment.executors.PipelineExecutorUtils;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.PipelineExecutor;
import org.apache.flink.core.execution.PipelineExecutorFactory;
import org.apache.flink.core.execution.PipelineExecutorServiceLoader;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

/**
 * Runs Flink SQL on an embedded cluster: a case per line of stdin, a blank line after the last, the changelog of its query per line of
 * stdout (peers/README.md).
 *
 * <p>Cases with the same query run as one job. The column "of" tells their rows apart; the times of each case are
 * shifted behind those of the case before it, whose last watermark is thus the first of the next.
 */
public final class Peer {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Milliseconds from one case to the next: a multiple of all windows, and more than all times of a case. */
  private static final long SHIFT = 2_520_000_000L;

  /** The changelog of the running job, in order of output. */
  private static final List<Change> OUTPUT = Collections.synchronizedList(new ArrayList<>());

  public static void main(String[] arguments) throws Exception {
    BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Configuration configuration = new Configuration();
    configuration.set(RestOptions.ADDRESS, "localhost");
    configuration.set(RestOptions.BIND_ADDRESS, "localhost");
    configuration.set(RestOptions.BIND_PORT, "0");
    try (MiniCluster cluster =
        new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(configuration).build())) {
      cluster.start();
      List<JsonNode> waiting = new ArrayList<>();
      for (String line = cases.readLine(); line != null; line = cases.readLine()) {
        if (!line.isEmpty()) {
          waiting.add(JSON.readTree(line));
          continue;
        }
        for (Map<String, Object> answer : answers(cluster, waiting)) {
          answers.println(JSON.writeValueAsString(answer));
        }
        waiting.clear();
      }
    }
  }

  private static List<Map<String, Object>> answers(MiniCluster cluster, List<JsonNode> cases) {
    Map<List<JsonNode>, List<Integer>> jobs = new LinkedHashMap<>();
    for (int at = 0; at < cases.size(); at++) {
      JsonNode given = cases.get(at);
      JsonNode alone = JSON.getNodeFactory().numberNode(first(given) == 0 ? at : -1);
      List<JsonNode> query = List.of(given.get("sql"), given.get("config"), given.get("inputs"), alone);
      jobs.computeIfAbsent(query, one -> new ArrayList<>()).add(at);
    }
    List<Map<String, Object>> answers = new ArrayList<>(Collections.nCopies(cases.size(), null));
    for (List<Integer> places : jobs.values()) {
      List<Map<String, Object>> found = job(cluster, places.stream().map(cases::get).toList());
      for (int at = 0; at < places.size(); at++) {
        answers.set(places.get(at), found.get(at));
      }
    }
    return answers;
  }

  private static List<Map<String, Object>> job(MiniCluster cluster, List<JsonNode> cases) {
    OUTPUT.clear();
    try {
      run(cluster, cases);
    } catch (Exception | AssertionError error) {
      if (cases.size() > 1) {
        return cases.stream().flatMap(one -> job(cluster, List.of(one)).stream()).toList();
      }
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return List.of(Map.of("failed", cause.toString()));
    }
    List<List<Change>> changes = new ArrayList<>();
    cases.forEach(one -> changes.add(new ArrayList<>()));
    OUTPUT.forEach(change -> changes.get(change.of - first(cases.get(0))).add(change));
    return changes.stream().map(of -> Map.<String, Object>of("rows", of)).toList();
  }

  private static void run(MiniCluster cluster, List<JsonNode> cases) throws Exception {
    JsonNode query = cases.get(0);
    Configuration configuration = new Configuration();
    configuration.set(DeploymentOptions.TARGET, "running");
    configuration.set(DeploymentOptions.ATTACHED, true);
    StreamExecutionEnvironment environment = new StreamExecutionEnvironment(new Running(cluster), configuration, null);
    environment.setParallelism(1);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    query.get("config").properties().forEach(one -> tables.getConfig().set(one.getKey(), one.getValue().asText()));
    DataStream<Event> events =
        environment
            .fromData(events(cases))
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Event>forGenerator(context -> new InScript())
                    .withTimestampAssigner((event, before) -> event.ts));
    for (JsonNode input : query.get("inputs")) {
      declare(tables, events, input);
    }
    tables.toChangelogStream(tables.sqlQuery(query.get("sql").asText())).process(new Write());
    environment.execute();
  }

  private static List<Event> events(List<JsonNode> cases) {
    List<Event> events = new ArrayList<>();
    int of = first(cases.get(0));
    for (JsonNode one : cases) {
      for (JsonNode given : one.get("script")) {
        if (given.has("watermark")) {
          Event event = new Event();
          event.ts = of * SHIFT + (given.get("watermark").isTextual() ? SHIFT / 2 : given.get("watermark").asLong() / 1000);
          events.add(event);
        }
        for (JsonNode row : given.path("rows")) {
          Event event = new Event();
          event.input = row.get("input").asText();
          event.of = of;
          event.ts = of * SHIFT + row.get("ts").asLong() / 1000;
          event.key = row.get("key").isNull() ? null : row.get("key").asText();
          event.n = row.get("n").asLong();
          event.v = row.hasNonNull("v") ? row.get("v").asLong() : null;
          event.part = row.path("part").asText();
          event.gone = row.path("gone").asBoolean();
          events.add(event);
        }
      }
      of++;
    }
    return events;
  }

  /** The first number in the column "of" of a job: 0, a case by itself whose times stay, or 1. */
  private static int first(JsonNode given) {
    return given.path("before_1970").asBoolean() ? 0 : 1;
  }

  /** A table with the columns of, key, n, part, v and ts, its rows as they arrive or, with "upserts", its changes by key. */
  private static void declare(StreamTableEnvironment tables, DataStream<Event> events, JsonNode input) {
    String name = input.get("name").asText();
    boolean upserts = input.path("upserts").asBoolean();
    RowKind set = upserts ? RowKind.UPDATE_AFTER : RowKind.INSERT;
    DataStream<Row> rows =
        events
            .filter(event -> event.input.equals(name))
            .map(event ->
                Row.ofKind(event.gone ? RowKind.DELETE : set, event.of, event.key, event.n, event.part, event.v))
            .returns(
                Types.ROW_NAMED(
                    new String[] {"of", "key", "n", "part", "v"},
                    Types.INT, Types.STRING, Types.LONG, Types.STRING, Types.LONG));
    Schema.Builder schema =
        Schema.newBuilder()
            .column("of", "INT NOT NULL")
            .column("key", upserts ? "STRING NOT NULL" : "STRING")
            .column("n", "BIGINT")
            .column("part", "STRING")
            .column("v", "BIGINT")
            .columnByMetadata("ts", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
            .columnByExpression("arrival", "PROCTIME()")
            .watermark("ts", "SOURCE_WATERMARK()");
    tables.createTemporaryView(
        name,
        upserts
            ? tables.fromChangelogStream(rows, schema.primaryKey("of", "key").build(), ChangelogMode.upsert())
            : tables.fromDataStream(rows, schema.build()));
  }

  /** A row of an input; without one, a watermark. */
  public static final class Event {
    public String input = "";
    public int of;
    public long ts;
    public String key;
    public long n;
    public String part = "";
    public Long v;
    public boolean gone;
  }

  /** A change of the result: its kind, the watermark after which it is emitted (null before the first), its columns but "of". */
  public record Change(int of, String kind, Long watermark, List<Object> values) {}

  /** A watermark of the script says that no row before it is to come: that of Flink is a millisecond less. */
  private static final class InScript implements WatermarkGenerator<Event> {
    @Override
    public void onEvent(Event event, long ts, WatermarkOutput output) {
      if (event.input.isEmpty()) {
        output.emitWatermark(new Watermark(event.ts - 1));
      }
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {}
  }

  private static final class Write extends ProcessFunction<Row, Void> {
    @Override
    public void processElement(Row row, Context context, Collector<Void> out) {
      int of = (int) row.getField(0);
      long watermark = context.timerService().currentWatermark() + 1 - of * SHIFT;
      List<Object> values = new ArrayList<>();
      for (int at = 1; at < row.getArity(); at++) {
        Object value = row.getField(at);
        Object instant = value instanceof LocalDateTime time ? time.toInstant(ZoneOffset.UTC) : value;
        values.add(instant instanceof Instant time ? time.toEpochMilli() - of * SHIFT : value);
      }
      OUTPUT.add(new Change(of, row.getKind().shortString(), watermark < -SHIFT / 4 || watermark > SHIFT ? null : watermark, values));
    }
  }

  /** Runs jobs on the cluster of this process. */
  private record Running(MiniCluster cluster) implements PipelineExecutorServiceLoader, PipelineExecutorFactory, PipelineExecutor {
    @Override
    public PipelineExecutorFactory getExecutorFactory(Configuration configuration) {
      return this;
    }

    @Override
    public Stream<String> getExecutorNames() {
      return Stream.of(getName());
    }

    @Override
    public String getName() {
      return "running";
    }

    @Override
    public boolean isCompatibleWith(Configuration configuration) {
      return true;
    }

    @Override
    public PipelineExecutor getExecutor(Configuration configuration) {
      return this;
    }

    @Override
    public CompletableFuture<JobClient> execute(Pipeline pipeline, Configuration configuration, ClassLoader loader)
        throws Exception {
      return cluster
          .submitJob(PipelineExecutorUtils.getStreamGraph(pipeline, configuration))
          .thenApply(
              submitted ->
                  new MiniClusterJobClient(
                      submitted.getJobID(), cluster, loader, MiniClusterJobClient.JobFinalizationBehavior.NOTHING));
    }
  }
}
