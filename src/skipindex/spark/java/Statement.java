package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import java.util.function.Function;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * A statement that was read, which Python carries out.
 *
 * columns: of the result; the same ones whenever Spark asks.
 */
public record Statement(String text, Seq<Attribute> columns, Python python) {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** What Python answers to the text: to "read" it, or to "run" it. */
  interface Python {
    JsonNode answer(String verb) throws Exception;

    /**
     * given: the arguments of sql() for the markers in the text, as Spark gives them to parsers.
     */
    static Python of(Function<Object, Object> python, Object session, String text, Object given) {
      return verb -> {
        var asked = new ArrayList<>(Arrays.asList(verb, session, text, given));
        return JSON.readTree((String) python.apply(asked));
      };
    }
  }

  /** Carries it out. */
  Seq<Row> rows() {
    List<Row> found = new ArrayList<>();
    try {
      JsonNode answer = python.answer("run");
      if (answer.has("error")) throw failure(answer.get("error").textValue());
      for (JsonNode row : answer.get("rows")) {
        var values = Scala.<Attribute>stream(columns).map(one -> value(row.get(one.name())));
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
  public String toString() {
    return text;
  }
}
