package skipindex;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
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

  private final StringWriter text = new StringWriter();
  private final JsonGenerator out;

  private ExpressionJson() throws IOException {
    out = Json.to(text);
  }

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
    try {
      ExpressionJson writer = new ExpressionJson();
      writer.write(expression, 0);
      writer.out.close();
      return writer.text.toString();
    } catch (Exception notRead) { // or it is too large
      return UNKNOWN;
    } catch (StackOverflowError tooDeep) {
      return UNKNOWN;
    }
  }

  private void write(Expression given, int level) throws IOException {
    if (level >= MOST_LEVELS) {
      throw new TooLarge();
    }
    checkLength();
    Expression node = given;
    while (node instanceof InheritAnalysisRules) { // its one child is what it stands for
      node = node.children().apply(0);
    }
    out.writeStartObject();
    out.writeStringField("c", className(node));
    out.writeStringField("t", typeOf(node));
    boolean isChain = junction(node).length() > 0;
    List<Expression> children = isChain ? chain(node) : list(node.children());
    if (!children.isEmpty()) {
      out.writeArrayFieldStart("a");
      for (Expression child : children) {
        write(child, level + 1);
      }
      out.writeEndArray();
    }
    if (node instanceof Literal) {
      out.writeFieldName("v");
      value(((Literal) node).value(), node.dataType());
    } else if (node instanceof InSet) {
      out.writeArrayFieldStart("v");
      DataType type = ((InSet) node).child().dataType();
      for (Object value : Scala.each(((InSet) node).hset())) {
        value(value, type);
        checkLength();
      }
      out.writeEndArray();
    } else {
      extras(node, list(node.children()));
    }
    if (node instanceof GetStructField) {
      GetStructField got = (GetStructField) node;
      StructField[] fields = ((StructType) got.child().dataType()).fields();
      out.writeStringField("n", fields[got.ordinal()].name());
    }
    out.writeEndObject();
  }

  private void checkLength() {
    if (text.getBuffer().length() > MOST_CHARACTERS) {
      throw new TooLarge();
    }
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
      Expression next = rest.pop();
      if (junction(next).equals(junction)) {
        List<Expression> operands = list(next.children());
        rest.push(operands.get(1));
        rest.push(operands.get(0));
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
  private void extras(Expression node, List<Expression> children) throws IOException {
    boolean isFirst = true;
    Iterator<?> each = ((Product) node).productIterator();
    while (each.hasNext()) {
      Object held = each.next();
      if (isOf(children, held)) {
        continue;
      }
      if (isFirst) {
        out.writeArrayFieldStart("x");
      }
      isFirst = false;
      held(held);
    }
    if (!isFirst) {
      out.writeEndArray();
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

  private void held(Object held) throws IOException {
    if (held == null) {
      out.writeNull();
    } else if (held instanceof Option) {
      Option<?> option = (Option<?>) held;
      held(option.isDefined() ? option.get() : null);
    } else if (held instanceof Boolean) {
      out.writeBoolean((Boolean) held);
    } else if (held instanceof Integer || held instanceof Long) {
      out.writeNumber(((Number) held).longValue());
    } else if (held instanceof String || held instanceof UTF8String || held instanceof Character) {
      out.writeString(held.toString());
    } else if (held instanceof DataType) {
      out.writeString(((DataType) held).catalogString());
    } else if (held instanceof Metadata) {
      out.writeString(((Metadata) held).json());
    } else if (held instanceof scala.Enumeration.Value) {
      out.writeString(held.toString());
    } else if (held instanceof Seq) {
      heldList(((Seq<?>) held).iterator());
    } else if (isContext(held)) {
      heldList(((Product) held).productIterator());
    } else {
      unknown(held);
    }
  }

  private void unknown(Object held) throws IOException {
    out.writeStartObject();
    out.writeStringField("c", held.getClass().getName());
    out.writeEndObject();
  }

  /** Whether it says how a number is computed: a class that some versions have. */
  private static boolean isContext(Object held) {
    String name = held.getClass().getName();
    return name.equals("org.apache.spark.sql.catalyst.expressions.NumericEvalContext");
  }

  private void heldList(Iterator<?> each) throws IOException {
    out.writeStartArray();
    while (each.hasNext()) {
      held(each.next());
    }
    out.writeEndArray();
  }

  /** A value in Catalyst's own form: a date is a number of days, a time of microseconds. */
  private void value(Object value, DataType type) throws IOException {
    if (value == null) {
      out.writeNull();
    } else if (value instanceof Boolean) {
      out.writeBoolean((Boolean) value);
    } else if (
        value instanceof Byte || value instanceof Short || value instanceof Integer
        || value instanceof Long) {
      out.writeNumber(((Number) value).longValue());
    } else if (value instanceof Float) { // the double of the same value
      out.writeString(Double.toString(((Float) value).doubleValue()));
    } else if (value instanceof Double) {
      out.writeString(value.toString());
    } else if (value instanceof Decimal) {
      out.writeString(((Decimal) value).toJavaBigDecimal().toPlainString());
    } else if (value instanceof UTF8String) {
      utf8(((UTF8String) value).getBytes());
    } else if (value instanceof byte[]) {
      out.writeString(hex((byte[]) value));
    } else if (value instanceof CalendarInterval) {
      CalendarInterval interval = (CalendarInterval) value;
      out.writeStartArray();
      out.writeNumber(interval.months);
      out.writeNumber(interval.days);
      out.writeNumber(interval.microseconds);
      out.writeEndArray();
    } else if (value instanceof InternalRow && type instanceof StructType) {
      StructField[] fields = ((StructType) type).fields();
      out.writeStartArray();
      for (int i = 0; i < fields.length; i++) {
        DataType fieldType = fields[i].dataType();
        out.writeStartObject();
        out.writeStringField("t", fieldType.catalogString());
        out.writeFieldName("v");
        value(((InternalRow) value).get(i, fieldType), fieldType);
        out.writeEndObject();
      }
      out.writeEndArray();
    } else {
      unknown(value);
    }
  }

  /** Text, or the bytes in hexadecimal digits in a list if they are none. */
  private void utf8(byte[] bytes) throws IOException {
    String read = new String(bytes, StandardCharsets.UTF_8);
    if (Arrays.equals(read.getBytes(StandardCharsets.UTF_8), bytes)) {
      out.writeString(read);
    } else {
      out.writeStartArray();
      out.writeString(hex(bytes));
      out.writeEndArray();
    }
  }

  private static String hex(byte[] bytes) {
    StringBuilder digits = new StringBuilder();
    for (byte one : bytes) {
      digits.append(Character.forDigit(one >> 4 & 15, 16));
      digits.append(Character.forDigit(one & 15, 16));
    }
    return digits.toString();
  }
}
