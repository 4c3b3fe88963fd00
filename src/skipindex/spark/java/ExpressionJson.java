package skipindex;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.InheritAnalysisRules;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Writes Catalyst's expressions as JSON, with all that they hold.
 *
 * <p>An expression is an object: {@code c} is its class, {@code t} the text of its data type,
 * {@code a} its children, {@code x} what else it holds, {@code v} the value of a literal or the
 * values of a set, and {@code n} the name of a struct's field. A chain of AND, or of OR, is one
 * object. What has no children, or holds nothing else, leaves the letter out. Nothing is left out
 * for any other reason: an object in {@code x} that has no form here is named by its class.
 *
 * <p>Janino compiles this source in the driver of every version of Spark, so it has no generics,
 * no lambdas, and no name that one version alone has.
 */
public final class ExpressionJson {
  /** Expressions inside expressions; chains of AND and OR count once. */
  private static final int MOST_LEVELS = 100;

  /** Of one expression. */
  private static final int MOST_CHARACTERS = 1 << 25;

  private static final String IS_UNKNOWN =
      "org.apache.spark.sql.catalyst.expressions.IsUnknown$$anon$";

  private static final String IS_NOT_UNKNOWN =
      "org.apache.spark.sql.catalyst.expressions.IsNotUnknown$$anon$";

  private static final String UNKNOWN = "{\"c\":\"\"}";

  private static final class TooLarge extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooLarge() {
      super("the expression is too large");
    }
  }

  private final StringBuilder out = new StringBuilder();

  private ExpressionJson() {}

  /** One object for each expression; of one that is too large or fails, the class is empty. */
  public static String json(Seq<?> expressions) {
    StringBuilder all = new StringBuilder("[");
    Iterator<?> each = expressions.iterator();
    while (each.hasNext()) {
      if (all.length() > 1) {
        all.append(',');
      }
      all.append(one((Expression) each.next()));
    }
    return all.append(']').toString();
  }

  private static String one(Expression expression) {
    ExpressionJson writer = new ExpressionJson();
    try {
      writer.write(expression, 0);
      return writer.out.toString();
    } catch (Exception notRead) { // or it is too large
      return UNKNOWN;
    } catch (StackOverflowError tooDeep) {
      return UNKNOWN;
    }
  }

  private void write(Expression node, int level) {
    if (level >= MOST_LEVELS || out.length() > MOST_CHARACTERS) {
      throw new TooLarge();
    }
    while (node instanceof InheritAnalysisRules) { // its one child is what it stands for
      node = (Expression) node.children().apply(0);
    }
    out.append("{\"c\":");
    text(className(node));
    out.append(",\"t\":");
    text(typeOf(node));
    boolean isChain = junction(node).length() > 0;
    List<Expression> children = isChain ? chain(node) : list(node.children());
    if (!children.isEmpty()) {
      out.append(",\"a\":[");
      for (int i = 0; i < children.size(); i++) {
        if (i > 0) {
          out.append(',');
        }
        write((Expression) children.get(i), level + 1);
      }
      out.append(']');
    }
    if (node instanceof Literal) {
      out.append(",\"v\":");
      value(((Literal) node).value(), node.dataType());
    } else if (node instanceof InSet) {
      out.append(",\"v\":");
      values((InSet) node);
    } else {
      extras(node, list(node.children()));
    }
    if (node instanceof GetStructField) {
      GetStructField got = (GetStructField) node;
      StructField[] fields = ((StructType) got.child().dataType()).fields();
      out.append(",\"n\":");
      text(fields[got.ordinal()].name());
    }
    out.append('}');
  }

  /** The class; of {@code IS UNKNOWN}, that of which it is an unnamed one. */
  private static String className(Expression node) {
    String name = node.getClass().getName();
    if (name.startsWith(IS_UNKNOWN) || name.startsWith(IS_NOT_UNKNOWN)) {
      return node.getClass().getSuperclass().getName();
    }
    return name;
  }

  /** The text of its type, as a catalog has it; empty if it is not resolved. */
  private static String typeOf(Expression node) {
    try {
      return node.dataType().catalogString();
    } catch (StackOverflowError tooDeep) {
      throw tooDeep;
    } catch (Throwable notResolved) {
      return "";
    }
  }

  /** {@code and} or {@code or}, before or after Spark looks up its name; else empty. */
  private static String junction(Expression node) {
    if (node instanceof And) {
      return "and";
    } else if (node instanceof Or) {
      return "or";
    } else if (node instanceof UnresolvedFunction && node.children().size() == 2) {
      Seq<?> name = ((UnresolvedFunction) node).nameParts();
      String word = name.size() == 1 ? String.valueOf(name.apply(0)) : "";
      return word.equals("and") || word.equals("or") ? word : "";
    }
    return "";
  }

  /** The operands of {@code a AND b AND c}, however many there are and wherever they nest. */
  private static List<Expression> chain(Expression node) {
    String junction = junction(node);
    List<Expression> found = new ArrayList<>();
    ArrayDeque<Expression> rest = new ArrayDeque<>();
    rest.push(node);
    while (!rest.isEmpty()) {
      Expression next = (Expression) rest.pop();
      if (junction(next).equals(junction)) {
        List<Expression> operands = list(next.children());
        rest.push((Expression) operands.get(1));
        rest.push((Expression) operands.get(0));
      } else {
        found.add(next);
      }
    }
    return found;
  }

  private static List<Expression> list(Seq<Expression> seq) {
    List<Expression> found = new ArrayList<>();
    for (Expression one : Scala.each(seq)) {
      found.add(one);
    }
    return found;
  }

  /** What the expression was made of, but for its children. */
  private void extras(Expression node, List<Expression> children) {
    String open = ",\"x\":[";
    Iterator<?> each = ((Product) node).productIterator();
    while (each.hasNext()) {
      Object held = each.next();
      if (isOf(children, held)) {
        continue;
      }
      out.append(open);
      held(held);
      open = ",";
    }
    if (open.equals(",")) {
      out.append(']');
    }
  }

  /** Whether it is a child, or a list, an option or a tuple of children. */
  private static boolean isOf(List<Expression> children, Object held) {
    if (held instanceof Expression) {
      for (Expression child : children) {
        if (child == held) {
          return true;
        }
      }
      return false;
    }
    Iterator<?> each;
    if (held instanceof Seq) {
      each = ((Seq<?>) held).iterator();
    } else if (held instanceof scala.Some || held instanceof scala.Tuple2) {
      each = ((Product) held).productIterator();
    } else {
      return false;
    }
    boolean some = false;
    while (each.hasNext()) {
      if (!isOf(children, each.next())) {
        return false;
      }
      some = true;
    }
    return some;
  }

  private void held(Object held) {
    if (held == null) {
      out.append("null");
    } else if (held instanceof Option) {
      Option<?> option = (Option<?>) held;
      held(option.isDefined() ? option.get() : null);
    } else if (held instanceof Boolean || held instanceof Integer || held instanceof Long) {
      out.append(held);
    } else if (held instanceof String || held instanceof UTF8String || held instanceof Character) {
      text(held.toString());
    } else if (held instanceof DataType) {
      text(((DataType) held).catalogString());
    } else if (held instanceof Metadata) {
      text(((Metadata) held).json());
    } else if (held instanceof scala.Enumeration.Value) {
      text(held.toString());
    } else if (held instanceof Seq) {
      heldList(((Seq<?>) held).iterator());
    } else if (isContext(held)) {
      heldList(((Product) held).productIterator());
    } else {
      out.append("{\"c\":");
      text(held.getClass().getName());
      out.append('}');
    }
  }

  /** Whether it says how a number is computed: a class that some versions have. */
  private static boolean isContext(Object held) {
    String name = held.getClass().getName();
    return name.equals("org.apache.spark.sql.catalyst.expressions.NumericEvalContext");
  }

  private void heldList(Iterator<?> each) {
    out.append('[');
    boolean first = true;
    while (each.hasNext()) {
      if (!first) {
        out.append(',');
      }
      first = false;
      held(each.next());
    }
    out.append(']');
  }

  private void values(InSet node) {
    DataType type = node.child().dataType();
    Iterator<?> each = node.hset().iterator();
    out.append('[');
    boolean first = true;
    while (each.hasNext()) {
      if (!first) {
        out.append(',');
      }
      first = false;
      value(each.next(), type);
      if (out.length() > MOST_CHARACTERS) {
        throw new TooLarge();
      }
    }
    out.append(']');
  }

  /** A value in Catalyst's own form: a date is a number of days, a time of microseconds. */
  private void value(Object value, DataType type) {
    if (value == null) {
      out.append("null");
    } else if (value instanceof Boolean
        || value instanceof Byte
        || value instanceof Short
        || value instanceof Integer
        || value instanceof Long) {
      out.append(value);
    } else if (value instanceof Float) { // the double of the same value
      text(Double.toString(((Float) value).doubleValue()));
    } else if (value instanceof Double) {
      text(value.toString());
    } else if (value instanceof Decimal) {
      text(((Decimal) value).toJavaBigDecimal().toPlainString());
    } else if (value instanceof UTF8String) {
      utf8(((UTF8String) value).getBytes());
    } else if (value instanceof byte[]) {
      hex((byte[]) value);
    } else if (value instanceof CalendarInterval) {
      CalendarInterval interval = (CalendarInterval) value;
      out.append('[').append(interval.months).append(',').append(interval.days);
      out.append(',').append(interval.microseconds).append(']');
    } else if (value instanceof InternalRow && type instanceof StructType) {
      StructField[] fields = ((StructType) type).fields();
      out.append('[');
      for (int i = 0; i < fields.length; i++) {
        if (i > 0) {
          out.append(',');
        }
        DataType fieldType = fields[i].dataType();
        out.append("{\"t\":");
        text(fieldType.catalogString());
        out.append(",\"v\":");
        value(((InternalRow) value).get(i, fieldType), fieldType);
        out.append('}');
      }
      out.append(']');
    } else {
      out.append("{\"c\":");
      text(value.getClass().getName());
      out.append('}');
    }
  }

  /** Text, or the bytes in hexadecimal digits in a list if they are none. */
  private void utf8(byte[] bytes) {
    String read = new String(bytes, StandardCharsets.UTF_8);
    if (Arrays.equals(read.getBytes(StandardCharsets.UTF_8), bytes)) {
      text(read);
    } else {
      out.append('[');
      hex(bytes);
      out.append(']');
    }
  }

  private void hex(byte[] bytes) {
    out.append('"');
    for (int i = 0; i < bytes.length; i++) {
      out.append(Character.forDigit(bytes[i] >> 4 & 15, 16));
      out.append(Character.forDigit(bytes[i] & 15, 16));
    }
    out.append('"');
  }

  private void text(String text) {
    quote(out, text);
  }

  /** A text as JSON, in ASCII alone, so that it may be cut anywhere. */
  static void quote(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ' || c > '~') {
        String digits = Integer.toHexString(c);
        out.append("\\u").append("0000".substring(digits.length())).append(digits);
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
