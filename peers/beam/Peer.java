import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.beam.runners.direct.DirectOptions;
import org.apache.beam.runners.direct.DirectRunner;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.PipelineResult;
import org.apache.beam.sdk.coders.KvCoder;
import org.apache.beam.sdk.coders.NullableCoder;
import org.apache.beam.sdk.coders.StringUtf8Coder;
import org.apache.beam.sdk.coders.VarIntCoder;
import org.apache.beam.sdk.metrics.MetricResult;
import org.apache.beam.sdk.metrics.MetricsFilter;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.testing.TestStream;
import org.apache.beam.sdk.transforms.DoFn;
import org.apache.beam.sdk.transforms.Filter;
import org.apache.beam.sdk.transforms.GroupByKey;
import org.apache.beam.sdk.transforms.ParDo;
import org.apache.beam.sdk.transforms.windowing.*;
import org.apache.beam.sdk.values.KV;
import org.apache.beam.sdk.values.PCollection;
import org.apache.beam.sdk.values.TimestampedValue;
import org.apache.beam.sdk.values.WindowingStrategy;
import org.joda.time.DateTimeZone;
import org.joda.time.Duration;
import org.joda.time.Instant;

/** Runs windowing cases on Beam's DirectRunner: a case per line of stdin, its panes per line of stdout (peers/README.md). */
public final class Peer {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A case takes less than a second; the runner does not end some (endless-sessions in decided.json). */
  private static final Duration LIMIT = Duration.standardSeconds(10);

  /** The panes of the running case, in order of output; -1 - step marks the end of a step. */
  private static final List<ObjectNode> OUTPUT = Collections.synchronizedList(new ArrayList<>());

  private static volatile int step;

  public static void main(String[] arguments) throws Exception {
    BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    for (String line = cases.readLine(); line != null; line = cases.readLine()) {
      answers.println(answer(JSON.readTree(line)));
    }
  }

  private static ObjectNode answer(JsonNode given) {
    ObjectNode answer = JSON.createObjectNode();
    answer.set("id", given.get("id"));
    try {
      run(given, answer);
    } catch (Exception | AssertionError error) {
      answer.put("failed", error.toString());
    }
    return answer;
  }

  private static void run(JsonNode given, ObjectNode answer) {
    OUTPUT.clear();
    step = 0;
    Pipeline pipeline = Pipeline.create(options());
    PCollection<KV<String, Integer>> rows = pipeline.apply(script(given.get("script")));
    rows.apply("Steps", Filter.by(row -> row.getValue() < 0)).apply("EndStep", ParDo.of(new EndStep()));
    PCollection<KV<String, Integer>> windowed =
        rows.apply("Rows", Filter.by(row -> row.getValue() >= 0)).apply(window(given));
    WindowingStrategy<?, ?> strategy = windowed.getWindowingStrategy();
    try {
      GroupByKey.applicableTo(windowed);
    } catch (IllegalArgumentException | IllegalStateException refused) {
      answer.put("refused", refused.getMessage().split("\n")[0]);
      // The check is passed with a trigger that is safe, and the runner gets the one of the case.
      windowed.setWindowingStrategyInternal(strategy.withTrigger(Repeatedly.forever(Never.ever())));
    }
    PCollection<KV<String, Iterable<Integer>>> grouped = windowed.apply(GroupByKey.create());
    windowed.setWindowingStrategyInternal(strategy);
    grouped.setWindowingStrategyInternal(strategy);
    grouped.apply("Panes", ParDo.of(new WritePane()));
    PipelineResult result = pipeline.run();
    if (result.waitUntilFinish(LIMIT) == null) {
      cancel(result);
      throw new AssertionError("not finished after " + LIMIT.getStandardSeconds() + " seconds");
    }
    boolean ends = given.get("script").toString().contains("\"infinity\"");
    ArrayNode panes = answer.putArray("panes");
    for (ObjectNode pane : OUTPUT) {
      if (ends || pane.get("step").asInt() < given.get("script").size()) {
        panes.add(pane);
      }
    }
    answer.put("expired", count(result, "DroppedDueToLateness"));
  }

  private static void cancel(PipelineResult result) {
    try {
      result.cancel();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static DirectOptions options() {
    DirectOptions options = PipelineOptionsFactory.create().as(DirectOptions.class);
    options.setRunner(DirectRunner.class);
    options.setTargetParallelism(1);
    options.setBlockOnRun(false);
    options.setEnforceEncodability(false);
    options.setEnforceImmutability(false);
    return options;
  }

  private static long count(PipelineResult result, String counter) {
    MetricsFilter all = MetricsFilter.builder().build();
    long counted = 0;
    for (MetricResult<Long> one : result.metrics().queryMetrics(all).getCounters()) {
      counted += one.getName().getName().equals(counter) ? one.getAttempted() : 0;
    }
    return counted;
  }

  /** The script, with a row of its own after each event that ends the step: TestStream goes on when all is quiet. */
  private static TestStream<KV<String, Integer>> script(JsonNode events) {
    TestStream.Builder<KV<String, Integer>> stream =
        TestStream.create(KvCoder.of(NullableCoder.of(StringUtf8Coder.of()), VarIntCoder.of()))
            // The clock of a TestStream begins at the least time.
            .advanceProcessingTime(Duration.millis(-BoundedWindow.TIMESTAMP_MIN_VALUE.getMillis()));
    long clock = 0;
    int number = 0;
    for (JsonNode event : events) {
      if (event.has("rows")) {
        stream = addRows(stream, event.get("rows"));
      } else if (event.has("clock")) {
        long by = millis(event.get("clock")) - clock;
        clock += by;
        stream = by == 0 ? stream : stream.advanceProcessingTime(Duration.millis(by));
      } else if (!event.get("watermark").isTextual()) {
        stream = stream.advanceWatermarkTo(new Instant(millis(event.get("watermark"))));
      } else {
        break;
      }
      number++;
      stream = stream.addElements(TimestampedValue.of(KV.of("", -number), BoundedWindow.TIMESTAMP_MIN_VALUE));
    }
    return stream.advanceWatermarkToInfinity();
  }

  @SuppressWarnings("unchecked")
  private static TestStream.Builder<KV<String, Integer>> addRows(
      TestStream.Builder<KV<String, Integer>> stream, JsonNode rows) {
    List<TimestampedValue<KV<String, Integer>>> bundle = new ArrayList<>();
    for (JsonNode row : rows) {
      String key = row.get("key").isNull() ? null : row.get("key").asText();
      bundle.add(TimestampedValue.of(KV.of(key, row.get("n").asInt()), new Instant(millis(row.get("ts")))));
    }
    if (bundle.isEmpty()) {
      return stream;
    }
    return stream.addElements(
        bundle.get(0), bundle.subList(1, bundle.size()).toArray(new TimestampedValue[0]));
  }

  private static Window<KV<String, Integer>> window(JsonNode given) {
    Window<KV<String, Integer>> window =
        Window.<KV<String, Integer>>into(windowFn(given.get("window")))
            .triggering(trigger(given.get("trigger")))
            .withAllowedLateness(
                duration(given.get("lateness")),
                given.get("closing").asText().equals("fire_always")
                    ? Window.ClosingBehavior.FIRE_ALWAYS
                    : Window.ClosingBehavior.FIRE_IF_NON_EMPTY)
            .withOnTimeBehavior(
                given.get("on_time").asText().equals("fire_always")
                    ? Window.OnTimeBehavior.FIRE_ALWAYS
                    : Window.OnTimeBehavior.FIRE_IF_NON_EMPTY)
            .withTimestampCombiner(
                switch (given.get("combiner").asText()) {
                  case "earliest" -> TimestampCombiner.EARLIEST;
                  case "latest" -> TimestampCombiner.LATEST;
                  default -> TimestampCombiner.END_OF_WINDOW;
                });
    return given.get("mode").asText().equals("discarding")
        ? window.discardingFiredPanes()
        : window.accumulatingFiredPanes();
  }

  private static WindowFn<Object, ?> windowFn(JsonNode option) {
    switch (option.get("is").asText()) {
      case "FixedWindows":
        Duration size = duration(option.get("size"));
        return FixedWindows.of(size).withOffset(offset(option, size));
      case "SlidingWindows":
        Duration period = duration(option.get("period"));
        return SlidingWindows.of(duration(option.get("size"))).every(period).withOffset(offset(option, period));
      case "Sessions":
        return Sessions.withGapDuration(duration(option.get("gap")));
      case "CalendarWindows":
        return calendarWindows(option);
      case "GlobalWindow":
        return new GlobalWindows();
      default:
        throw new IllegalArgumentException("no window: " + option);
    }
  }

  private static WindowFn<Object, ?> calendarWindows(JsonNode option) {
    DateTimeZone zone = DateTimeZone.forID(option.path("timezone").asText("UTC"));
    if (option.has("days")) {
      return CalendarWindows.days(option.get("days").asInt()).withTimeZone(zone);
    }
    if (option.has("months")) {
      return CalendarWindows.months(option.get("months").asInt()).withTimeZone(zone);
    }
    return CalendarWindows.years(option.get("years").asInt()).withTimeZone(zone);
  }

  private static Trigger trigger(JsonNode spec) {
    if (spec.isArray()) {
      List<Trigger> parts = new ArrayList<>();
      spec.get(1).forEach(part -> parts.add(trigger(part)));
      return switch (spec.get(0).asText()) {
        case "AfterAny" -> AfterFirst.of(parts);
        case "AfterAll" -> AfterAll.of(parts);
        case "AfterEach" -> AfterEach.inOrder(parts);
        default -> throw new IllegalArgumentException("no trigger: " + spec);
      };
    }
    return switch (spec.get("is").asText()) {
      case "AfterCount" -> AfterPane.elementCountAtLeast(spec.get("n").asInt());
      case "AfterProcessingTime" -> afterProcessingTime(spec);
      case "AfterWatermark" -> afterWatermark(spec);
      case "Default" -> DefaultTrigger.of();
      case "Never" -> Never.ever();
      case "OrFinally" -> trigger(spec.get("main")).orFinally(once(spec.get("finally_")));
      case "Repeatedly" -> Repeatedly.forever(trigger(spec.get("trigger")));
      default -> throw new IllegalArgumentException("no trigger: " + spec);
    };
  }

  private static Trigger.OnceTrigger once(JsonNode spec) {
    return (Trigger.OnceTrigger) trigger(spec);
  }

  private static Trigger afterProcessingTime(JsonNode spec) {
    AfterProcessingTime trigger = AfterProcessingTime.pastFirstElementInPane().plusDelayOf(duration(spec.path("delay")));
    return spec.has("aligned_to")
        ? trigger.alignedTo(duration(spec.get("aligned_to")), new Instant(millis(spec.path("offset"))))
        : trigger;
  }

  private static Trigger afterWatermark(JsonNode spec) {
    AfterWatermark.FromEndOfWindow end = AfterWatermark.pastEndOfWindow();
    if (!spec.has("early")) {
      return spec.has("late") ? end.withLateFirings(once(spec.get("late"))) : end;
    }
    AfterWatermark.AfterWatermarkEarlyAndLate early = end.withEarlyFirings(once(spec.get("early")));
    return spec.has("late") ? early.withLateFirings(once(spec.get("late"))) : early;
  }

  private static Duration offset(JsonNode option, Duration period) {
    return Duration.millis(Math.floorMod(millis(option.path("offset")), period.getMillis()));
  }

  private static Duration duration(JsonNode micros) {
    return Duration.millis(millis(micros));
  }

  private static long millis(JsonNode micros) {
    return Math.floorDiv(micros.asLong(), 1000L);
  }

  private static final class EndStep extends DoFn<KV<String, Integer>, Void> {
    @ProcessElement
    public void endStep(@Element KV<String, Integer> row) {
      step = -row.getValue();
    }
  }

  private static final class WritePane extends DoFn<KV<String, Iterable<Integer>>, Void> {
    @ProcessElement
    public void write(
        @Element KV<String, Iterable<Integer>> group, BoundedWindow window, PaneInfo pane, @Timestamp Instant timestamp) {
      ObjectNode row = JSON.createObjectNode().put("step", step).put("key", group.getKey());
      if (window instanceof IntervalWindow bounds) {
        row.put("start", bounds.start().getMillis() * 1000).put("end", bounds.end().getMillis() * 1000);
        row.put("timestamp", timestamp.getMillis() * 1000);
      } else {
        row.putNull("start").putNull("end");
        row.put("timestamp", timestamp.equals(window.maxTimestamp()) ? null : timestamp.getMillis() * 1000);
      }
      row.put("timing", pane.getTiming().name());
      row.put("index", pane.getIndex()).put("on_time_index", pane.getNonSpeculativeIndex());
      row.put("is_first", pane.isFirst()).put("is_last", pane.isLast());
      ArrayNode rows = row.putArray("rows");
      group.getValue().forEach(rows::add);
      OUTPUT.add(row);
    }
  }
}
