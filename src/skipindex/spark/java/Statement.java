package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Seq;

/** A statement that was read, which Python carries out. */
public class Statement {
  private static final ObjectMapper JSON = new ObjectMapper();
  private final Function<Object, Object> python;
  private final Object session;
  private final String text;
  private final Object given;
  private final String[] names;
  /** Of the result; the same ones whenever Spark asks. */
  final Seq<Attribute> columns;

  /**
   * given: the arguments of sql() for the markers in the text, as Spark gives them to parsers.
   */
  Statement(
      Function<Object, Object> python, Object session, String text, Object given,
      StructType columns) {
    this.python = python;
    this.session = session;
    this.text = text;
    this.given = given;
    this.names = columns.fieldNames();
    this.columns = Scala.<Attribute>kept(DataTypeUtils.toAttributes(columns));
  }

  /** What Python answers to a text of a session: to read it, or to run it. */
  static JsonNode ask(
      Function<Object, Object> python, String verb, Object session, String text, Object given)
      throws Exception {
    Object[] asked = {verb, session, text, given};
    return JSON.readTree((String) python.apply(new ArrayList<Object>(Arrays.asList(asked))));
  }

  /** Carries it out. */
  Seq<Row> rows() {
    List<Row> found = new ArrayList<>();
    try {
      JsonNode answer = ask(python, "run", session, text, given);
      if (answer.has("error")) throw failure(answer.get("error").textValue());
      for (JsonNode row : answer.get("rows")) {
        Object[] values = new Object[names.length];
        for (int i = 0; i < names.length; i++) values[i] = value(row.get(names[i]));
        found.add(RowFactory.create(values));
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
    List<Object> all = new ArrayList<>();
    for (JsonNode one : json) all.add(one.asText());
    return all.toArray();
  }

  private static Exception failure(String message) {
    Option<Object> none = Option.<Object>empty();
    return new AnalysisException(
        message,
        none,
        none,
        Option.<Throwable>empty(),
        Option.<String>empty(),
        Scala.<String, String>map(),
        new QueryContext[0]);
  }

  @Override
  public String toString() {
    return text;
  }
}
