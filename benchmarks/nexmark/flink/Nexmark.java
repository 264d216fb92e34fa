import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.BoundedOutOfOrdernessWatermarks;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.enumerate.NonSplittingRecursiveEnumerator;
import org.apache.flink.core.fs.Path;
import org.apache.flink.formats.parquet.ParquetColumnarRowInputFormat;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableException;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

/**
 * Runs a query of Nexmark as Flink SQL on a cluster in this process, and prints a line of JSON.
 *
 * <p>Its argument is JSON: "sql", a SELECT; "inputs", per table its folder of Parquet files and the columns to read, with their types;
 * "config", settings of Flink; "answer", whether the changes of the result are printed too; "warm", the part of the events before the
 * measurement; "drift_ms", how far inputs may be ahead of each other in event time (watermark alignment), since Spark's micro-batches
 * read a file of each. Without the answer the sink is Flink's blackhole.
 *
 * <p>The files of an input are read in the order of their names, by as many readers as the parallelism.
 */
public final class Nexmark {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration DELAY = Duration.ofSeconds(4);
  private static final Duration ALIGNED = Duration.ofMillis(50);

  /** The rows read so far, by all readers. */
  private static final LongAdder READ = new LongAdder();

  /** The changes of the result. */
  private static final List<List<Object>> CHANGES = Collections.synchronizedList(new ArrayList<>());

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    JsonNode given = JSON.readTree(arguments[0]);
    Progress progress = new Progress();
    progress.start();
    Map<String, Object> found = new LinkedHashMap<>();
    try {
      run(given);
      progress.done(found, given.get("warm").asDouble());
    } catch (ValidationException | TableException error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      found.put("refused", cause.getClass().getSimpleName() + ": " + String.valueOf(cause.getMessage()).lines().findFirst().orElse(""));
    }
    if (given.get("answer").asBoolean()) {
      found.put("changes", CHANGES);
    }
    answers.println(JSON.writeValueAsString(found));
    System.exit(0);
  }

  private static void run(JsonNode given) throws Exception {
    Configuration configuration = new Configuration();
    given.get("config").properties().forEach(one -> configuration.setString(one.getKey(), one.getValue().asText()));
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(given.get("parallelism").asInt(), configuration);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    Duration drift = Duration.ofMillis(given.get("drift_ms").asLong());
    given.get("inputs").properties().forEach(one -> declare(environment, tables, one.getKey(), one.getValue(), drift));
    Table result = tables.sqlQuery(given.get("sql").asText());
    if (given.get("answer").asBoolean()) {
      tables.toChangelogStream(result).process(new Collect());
      environment.execute();
    } else {
      result.insertInto(TableDescriptor.forConnector("blackhole").build()).execute().await();
    }
  }

  /** A table of the rows in a folder of Parquet files; "dateTime" is its event time. */
  private static void declare(
      StreamExecutionEnvironment environment, StreamTableEnvironment tables, String name, JsonNode input, Duration drift) {
    List<String> names = new ArrayList<>();
    List<LogicalType> types = new ArrayList<>();
    input.get("columns").properties().forEach(column -> {
      names.add(column.getKey());
      types.add(type(column.getValue().asText()));
    });
    RowType row = RowType.of(types.toArray(new LogicalType[0]), names.toArray(new String[0]));
    InternalTypeInfo<RowData> rows = InternalTypeInfo.of(row);
    ParquetColumnarRowInputFormat<FileSourceSplit> format =
        ParquetColumnarRowInputFormat.createPartitionedFormat(
            new org.apache.hadoop.conf.Configuration(), row, rows, List.of(), null, 2048, true, true);
    FileSource<RowData> source =
        FileSource.forBulkFileFormat(format, new Path(input.get("folder").asText()))
            .setFileEnumerator(NonSplittingRecursiveEnumerator::new)
            .setSplitAssigner(InOrder::new)
            .build();
    int time = names.indexOf("dateTime");
    WatermarkStrategy<RowData> watermarks =
        WatermarkStrategy.<RowData>forGenerator(context -> new Counted())
            .withTimestampAssigner((event, before) -> event.getTimestamp(time, 3).getMillisecond())
            .withWatermarkAlignment("events", drift, ALIGNED);
    DataStream<RowData> stream = environment.fromSource(source, watermarks, name);
    Schema.Builder schema = Schema.newBuilder().watermark("dateTime", "SOURCE_WATERMARK()");
    if (input.path("arrival").asBoolean()) {
      schema.columnByExpression("p_time", "PROCTIME()");
    }
    tables.createTemporaryView(name, stream, schema.build());
  }

  private static LogicalType type(String name) {
    switch (name) {
      case "BIGINT":
        return new BigIntType();
      case "STRING":
        return VarCharType.STRING_TYPE;
      default:
        return new LocalZonedTimestampType(3);
    }
  }

  /** Assigns files by their names. */
  private static final class InOrder implements FileSplitAssigner {
    private final TreeMap<String, FileSourceSplit> splits = new TreeMap<>();

    InOrder(Collection<FileSourceSplit> splits) {
      addSplits(splits);
    }

    @Override
    public Optional<FileSourceSplit> getNext(String host) {
      return Optional.ofNullable(splits.pollFirstEntry()).map(Map.Entry::getValue);
    }

    @Override
    public void addSplits(Collection<FileSourceSplit> more) {
      more.forEach(split -> splits.put(split.path().getPath(), split));
    }

    @Override
    public Collection<FileSourceSplit> remainingSplits() {
      return splits.values();
    }
  }

  /** Flink's watermarks of bounded out-of-orderness; counts the rows. */
  private static final class Counted implements WatermarkGenerator<RowData> {
    private final BoundedOutOfOrdernessWatermarks<RowData> watermarks = new BoundedOutOfOrdernessWatermarks<>(DELAY);

    @Override
    public void onEvent(RowData event, long ts, WatermarkOutput output) {
      READ.increment();
      watermarks.onEvent(event, ts, output);
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
      watermarks.onPeriodicEmit(output);
    }
  }

  /** Keeps the changes: the kind, then the columns, times as milliseconds. */
  private static final class Collect extends ProcessFunction<Row, Void> {
    @Override
    public void processElement(Row row, Context context, Collector<Void> out) {
      List<Object> change = new ArrayList<>();
      change.add(row.getKind().shortString());
      for (int at = 0; at < row.getArity(); at++) {
        Object value = row.getField(at);
        Object instant = value instanceof LocalDateTime time ? time.toInstant(ZoneOffset.UTC) : value;
        change.add(instant instanceof Instant time ? time.toEpochMilli() : value);
      }
      CHANGES.add(change);
    }
  }

  /** Looks at the number of rows read, fifty times a second. */
  private static final class Progress extends Thread {
    private final List<long[]> looks = new ArrayList<>();
    private final long begun = System.nanoTime();
    private volatile boolean ended;

    Progress() {
      setDaemon(true);
    }

    @Override
    public void run() {
      while (!ended) {
        look();
        try {
          Thread.sleep(20);
        } catch (InterruptedException error) {
          return;
        }
      }
    }

    private synchronized void look() {
      looks.add(new long[] {System.nanoTime(), READ.sum()});
    }

    private long[] first(long rows) {
      return looks.stream().filter(look -> look[1] >= rows).findFirst().orElseThrow();
    }

    synchronized void done(Map<String, Object> found, double warm) {
      ended = true;
      look();
      long rows = READ.sum();
      long[] from = first((long) (rows * warm));
      long[] until = first(rows);
      found.put("events", rows);
      found.put("session_seconds", (first(1)[0] - begun) / 1e9);
      found.put("wall_seconds", (System.nanoTime() - first(1)[0]) / 1e9);
      found.put("events_per_second", (until[1] - from[1]) * 1e9 / Math.max(until[0] - from[0], 1));
    }
  }
}
