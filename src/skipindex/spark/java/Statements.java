package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.*;
import java.util.Arrays;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * Lets sessions take the statements of skipindex as SQL.
 *
 * A session has one parser. This one stands in front of it, and gives it every text that does
 * not begin as a statement of skipindex, unchanged. Python reads a statement when it is parsed,
 * and carries it out when Spark runs the command that it has become: once, as for any command.
 */
class Statements {
  /** How a statement begins, after comments. */
  private static final Pattern BEGIN = Pattern.compile(
      "(?:OPTIMIZE|VACUUM|EXPLAIN\\s+SKIPPING|DESC(?:RIBE)?\\s+SKIPPING"
          + "|(?:CREATE|DROP)\\s+INDEX(?:ES)?(?=.*\\bON\\b)|(?:SHOW|REFRESH)\\s+INDEX(?:ES)?"
          + "|ALTER\\s+TABLE(?=.*\\bDISTRIBUTED\\s+BY\\b))\\b",
      Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  /** Spark's class of errors of a text that it cannot read. */
  private static final String SYNTAX = "PARSE_SYNTAX_ERROR";
  private volatile Function<Object, Object> python;

  /** From now on statements are given to Python; to null, they are as unknown as before. */
  void connect(Function<Object, Object> python) {
    this.python = python;
  }

  /** Give the parser to a session that has another one by now. */
  void give(SparkSession session) {
    SessionState state = Compat.classic(session).sessionState();
    ParserInterface parser = state.sqlParser();
    boolean isOurs = Proxy.isProxyClass(parser.getClass())
        && Proxy.getInvocationHandler(parser) instanceof Parser;
    if (isOurs) return;
    try {
      Field field = SessionState.class.getDeclaredField("sqlParser");
      field.setAccessible(true);
      field.set(state, inFrontOf(session, parser));
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** The parser of a session that is made. */
  ParserInterface inFrontOf(SparkSession session, ParserInterface below) {
    return (ParserInterface) Proxy.newProxyInstance(
        ParserInterface.class.getClassLoader(),
        new Class<?>[] {ParserInterface.class},
        new Parser(this, below, session));
  }

  /** Whether a text begins as a statement. */
  static boolean isStatement(String text) {
    int begin = 0;
    while (begin < text.length()) {
      if (Character.isWhitespace(text.charAt(begin)))
        begin++;
      else if (text.startsWith("--", begin))
        begin = after(text, "\n", begin);
      else if (text.startsWith("/*", begin))
        begin = after(text, "*/", begin);
      else
        break;
    }
    return BEGIN.matcher(text).region(begin, text.length()).lookingAt();
  }

  private static int after(String text, String end, int begin) {
    int found = text.indexOf(end, begin);
    return found < 0 ? text.length() : found + end.length();
  }

  /** A parser in front of another. */
  private record Parser(Statements of, ParserInterface below, SparkSession session)
      implements InvocationHandler {
    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      Function<Object, Object> current = of.python;
      boolean isStatement = current != null && method.getName().startsWith("parsePlan")
          && isStatement((String) arguments[0]);
      if (!isStatement) return given(method, arguments);
      String text = (String) arguments[0];
      Object given = arguments.length > 1 ? arguments[1] : null; // from Spark 4.1 on
      var asked = Command.Python.of(current, session, text, given);
      JsonNode answer = asked.answer("read");
      boolean isRead = answer.has("columns");
      if (isRead && !answer.get("may_be_of_others").booleanValue()) {
        return planned(answer, text, asked);
      }
      try {
        return given(method, arguments); // Delta has statements that begin so too
      } catch (Exception unknown) {
        if (isRead) return planned(answer, text, asked);
        // A quote that is not closed, for example, is for it to tell.
        throw answer.has("near") ? syntaxError(answer, text) : unknown;
      }
    }

    private Object given(Method method, Object[] arguments) throws Throwable {
      try {
        return method.invoke(below, arguments);
      } catch (InvocationTargetException wrapped) {
        throw wrapped.getCause();
      }
    }

    private static LogicalPlan planned(JsonNode answer, String text, Command.Python python) {
      var columns = StructType.fromDDL(answer.get("columns").textValue());
      Seq<Attribute> output = Scala.kept(DataTypeUtils.toAttributes(columns));
      return new Command(new Command.Statement(text, output, python));
    }
  }

  /** What is wrong with the text of a statement, as Spark says it. */
  private static Exception syntaxError(JsonNode answer, String text) throws Exception {
    Object words = Scala.map("error", answer.get("near").textValue())
                       .$plus(new Tuple2<String, String>("hint", answer.get("hint").textValue()));
    Constructor<?> made = Origin.class.getConstructors()[0];
    Object[] parts = new Object[made.getParameterTypes().length];
    Arrays.fill(parts, Option.empty());
    parts[0] = Option.apply(answer.get("line").numberValue());
    parts[1] = Option.apply(answer.get("position").numberValue());
    Object at = made.newInstance(parts);
    Object command = Option.apply(text);
    for (Constructor<?> each : ParseException.class.getConstructors()) {
      Class<?>[] types = each.getParameterTypes();
      // Until Spark 4.0 an error has an end too.
      if (types.length == 4 && types[2] == String.class) {
        return (Exception) each.newInstance(command, at, SYNTAX, words);
      }
      if (types.length == 5 && types[3] == String.class) {
        return (Exception) each.newInstance(command, at, at, SYNTAX, words);
      }
    }
    throw new IllegalStateException("no ParseException of a class of errors");
  }
}
