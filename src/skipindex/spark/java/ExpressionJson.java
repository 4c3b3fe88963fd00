package skipindex;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.*;
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

  private static final String PACKAGE = "org.apache.spark.sql.catalyst.expressions.";

  /** What says how a number is computed: a class that some versions have. */
  private static final String CONTEXT = PACKAGE + "NumericEvalContext";

  private static final String UNKNOWN = "{\"c\":\"\"}";

  private final StringWriter text = new StringWriter();
  private final JsonGenerator out;

  private ExpressionJson() throws IOException {
    out = Json.to(text);
  }

  /** One object for each expression; of one that is too large or fails, the class is empty. */
  public static String json(Seq<?> expressions) {
    return Scala.stream(expressions)
        .map(one -> one((Expression) one))
        .collect(Collectors.joining(",", "[", "]"));
  }

  private static String one(Expression expression) {
    try {
      var writer = new ExpressionJson();
      writer.write(expression, 0);
      writer.out.close();
      return writer.text.toString();
    } catch (Exception | StackOverflowError notRead) { // or it is too large
      return UNKNOWN;
    }
  }

  private void write(Expression given, int level) throws IOException {
    if (level >= MOST_LEVELS) throw new IOException("too many levels");
    checkLength();
    Expression node = given;
    // Its one child is what it stands for.
    while (node instanceof InheritAnalysisRules) node = node.children().apply(0);
    out.writeStartObject();
    out.writeStringField("c", className(node));
    out.writeStringField("t", typeOf(node));
    boolean isChain = !junction(node).isEmpty();
    List<Expression> children = isChain ? chain(node) : Scala.list(node.children());
    if (!children.isEmpty()) {
      out.writeArrayFieldStart("a");
      for (Expression child : children) write(child, level + 1);
      out.writeEndArray();
    }
    if (node instanceof Literal literal) {
      out.writeFieldName("v");
      value(literal.value(), node.dataType());
    } else if (node instanceof InSet set) {
      out.writeArrayFieldStart("v");
      for (Object value : Scala.each(set.hset())) {
        value(value, set.child().dataType());
        checkLength();
      }
      out.writeEndArray();
    } else
      extras(node);
    if (node instanceof GetStructField got) {
      StructField[] fields = ((StructType) got.child().dataType()).fields();
      out.writeStringField("n", fields[got.ordinal()].name());
    }
    out.writeEndObject();
  }

  private void checkLength() throws IOException {
    if (text.getBuffer().length() > MOST_CHARACTERS) throw new IOException("too many characters");
  }

  /** The class; of {@code IS UNKNOWN}, that of which it is an unnamed one. */
  private static String className(Expression node) {
    String name = node.getClass().getName();
    boolean isUnnamed = name.startsWith(PACKAGE + "IsUnknown$$anon$")
        || name.startsWith(PACKAGE + "IsNotUnknown$$anon$");
    return isUnnamed ? node.getClass().getSuperclass().getName() : name;
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
    if (node instanceof And) return "and";
    if (node instanceof Or) return "or";
    if (!(node instanceof UnresolvedFunction call) || node.children().size() != 2) return "";
    String word = call.nameParts().mkString(".");
    return word.equals("and") || word.equals("or") ? word : "";
  }

  /** The operands of {@code a AND b AND c}, however many there are and wherever they nest. */
  private static List<Expression> chain(Expression node) {
    String junction = junction(node);
    var found = new ArrayList<Expression>();
    var rest = new ArrayDeque<>(List.of(node));
    while (!rest.isEmpty()) {
      Expression next = rest.pop();
      if (junction(next).equals(junction)) {
        rest.push(next.children().apply(1));
        rest.push(next.children().apply(0));
      } else
        found.add(next);
    }
    return found;
  }

  /** What the expression was made of, but for its children. */
  private void extras(Expression node) throws IOException {
    List<Expression> children = Scala.list(node.children());
    var each = ((Product) node).productIterator();
    boolean isFirst = true;
    while (each.hasNext()) {
      Object held = each.next();
      if (isOf(children, held)) continue;
      if (isFirst) out.writeArrayFieldStart("x");
      isFirst = false;
      held(held);
    }
    if (!isFirst) out.writeEndArray();
  }

  /** Whether it is a child, or a list, an option or a tuple of children. */
  private static boolean isOf(List<Expression> children, Object held) {
    if (held instanceof Expression) return children.stream().anyMatch(one -> one == held);
    boolean isTuple = held instanceof scala.Some || held instanceof scala.Tuple2;
    if (!isTuple && !(held instanceof Seq)) return false;
    var each = held instanceof Seq<?> list ? list.iterator() : ((Product) held).productIterator();
    return each.hasNext() && each.forall(one -> isOf(children, one));
  }

  /** What an expression holds, or a value in Catalyst's own form: a date is a number of days. */
  private void held(Object held) throws IOException {
    if (held == null)
      out.writeNull();
    else if (held instanceof Option<?> option)
      held(option.isDefined() ? option.get() : null);
    else if (held instanceof Boolean is)
      out.writeBoolean(is);
    else if (held instanceof Float number) // the double of the same value
      out.writeString(Double.toString(number.doubleValue()));
    else if (
        held instanceof Byte || held instanceof Short || held instanceof Integer
        || held instanceof Long)
      out.writeNumber(((Number) held).longValue());
    else if (held instanceof DataType type)
      out.writeString(type.catalogString());
    else if (held instanceof Metadata metadata)
      out.writeString(metadata.json());
    else if (held instanceof Decimal decimal)
      out.writeString(decimal.toJavaBigDecimal().toPlainString());
    else if (held instanceof UTF8String text)
      utf8(text.getBytes());
    else if (held instanceof byte[] bytes)
      out.writeString(HexFormat.of().formatHex(bytes));
    else if (held instanceof CalendarInterval interval) {
      out.writeArray(new long[] {interval.months, interval.days, interval.microseconds}, 0, 3);
    } else if (
        held instanceof String || held instanceof Double || held instanceof Character
        || held instanceof scala.Enumeration.Value)
      out.writeString(held.toString());
    else if (held instanceof Seq<?> list)
      heldList(list.iterator());
    else if (held.getClass().getName().equals(CONTEXT))
      heldList(((Product) held).productIterator());
    else
      unknown(held);
  }

  private void unknown(Object held) throws IOException {
    out.writeStartObject();
    out.writeStringField("c", held.getClass().getName());
    out.writeEndObject();
  }

  private void heldList(Iterator<?> each) throws IOException {
    out.writeStartArray();
    while (each.hasNext()) held(each.next());
    out.writeEndArray();
  }

  /** A value of a literal, whose structs have types. */
  private void value(Object value, DataType type) throws IOException {
    if (!(value instanceof InternalRow row && type instanceof StructType struct)) {
      held(value);
      return;
    }
    out.writeStartArray();
    for (int i = 0; i < struct.length(); i++) {
      DataType fieldType = struct.fields()[i].dataType();
      out.writeStartObject();
      out.writeStringField("t", fieldType.catalogString());
      out.writeFieldName("v");
      value(row.get(i, fieldType), fieldType);
      out.writeEndObject();
    }
    out.writeEndArray();
  }

  /** Text, or the bytes in hexadecimal digits in a list if they are none. */
  private void utf8(byte[] bytes) throws IOException {
    var read = new String(bytes, StandardCharsets.UTF_8);
    if (Arrays.equals(read.getBytes(StandardCharsets.UTF_8), bytes))
      out.writeString(read);
    else
      out.writeArray(new String[] {HexFormat.of().formatHex(bytes)}, 0, 1);
  }
}
