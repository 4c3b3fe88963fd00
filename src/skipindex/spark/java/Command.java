package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.function.Function;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.unsafe.Platform;
import scala.Enumeration.Value;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A statement that was read, which Python carries out when Spark runs it: once.
 *
 * Overloads are for the lists of Scala 2.12 and 2.13.
 */
public class Command extends LogicalPlan implements RunnableCommand {
  private static final long serialVersionUID = 1L;
  private final transient Statement statement;

  public Command(Statement statement) {
    this.statement = statement;
  }

  /** columns: of the result; the same ones whenever Spark asks. */
  public record Statement(String text, Seq<Attribute> columns, Python python) {
    @Override
    public String toString() {
      return text;
    }
  }

  /** What Python answers to the text: to "read" it, or to "run" it. */
  interface Python {
    JsonNode answer(String verb) throws Exception;

    /**
     * given: the arguments of sql() for the markers in the text, as Spark gives them to parsers.
     */
    static Python of(Function<Object, Object> python, Object session, String text, Object given) {
      return verb -> {
        var asked = new ArrayList<>(Arrays.asList(verb, session, text, given));
        return Json.read(((String) python.apply(asked)).getBytes(StandardCharsets.UTF_8));
      };
    }
  }

  @Override
  public Seq<Attribute> output() {
    return statement.columns;
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    List<Row> found = new ArrayList<>();
    try {
      JsonNode answer = statement.python.answer("run");
      if (answer.has("error")) throw failure(answer.get("error").textValue());
      for (JsonNode row : answer.get("rows")) {
        var values =
            Scala.<Attribute>stream(statement.columns).map(one -> value(row.get(one.name())));
        found.add(RowFactory.create(values.toArray()));
      }
    } catch (Exception problem) {
      Platform.throwException(problem); // Scala declares none
    }
    return Scala.listed(found);
  }

  /** A whole number, a text, or a list of texts. */
  private static Object value(JsonNode json) {
    if (json == null || json.isNull()) return null;
    if (json.isIntegralNumber()) return json.longValue();
    if (!json.isArray()) return json.asText();
    var all = new ArrayList<String>();
    for (JsonNode one : json) all.add(one.asText());
    return all.toArray();
  }

  private static Exception failure(String message) {
    Option<Object> none = Option.empty();
    var contexts = new QueryContext[0];
    return new AnalysisException(
        message, none, none, Option.empty(), Option.empty(), Scala.map(), contexts);
  }

  @Override
  public Seq<LogicalPlan> children() {
    return Scala.none();
  }

  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    return Scala.map();
  }

  @Override
  public Seq<Value> nodePatterns() {
    return Scala.seq(TreePattern.COMMAND());
  }

  /** How Scala gives what it mixes in its value; the method above says it. */
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Value> patterns) {}

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.Seq<Value> patterns) {}

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int place) {
    return statement;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Command;
  }
}
