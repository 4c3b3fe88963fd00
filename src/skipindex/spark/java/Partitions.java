package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.LocalDate;
import java.util.*;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * The condition on partition columns that a condition on other columns implies.
 *
 * What is declared of a catalog's table speaks of the values that the catalog has for a
 * partition, wherever its files are.
 */
class Partitions {
  /** The condition for a scan, by the folders of its partitions; null if all are needed. */
  static Expression condition(
      LogicalRelation scan, Scanned scanned, Seq<Expression> conjuncts, Set<String> names,
      Query query) throws Exception {
    List<Attribute> columns = columns(scan, scanned);
    // The others tell no more than which partitions are needed.
    var ofFiles = new ArrayList<Expression>();
    for (Expression one : Scala.each(conjuncts)) {
      var needed = Scala.<Attribute>stream(one.references());
      if (!needed.allMatch(column -> isAmong(column, columns))) ofFiles.add(one);
    }
    if (ofFiles.isEmpty()) return null;
    String json = ExpressionJson.json(Scala.listed(ofFiles));
    Object key = List.of(scanned.question(Json.array(), Json.object(), json), names);
    byte[] found = query.once(key, () -> {
      ObjectNode folders = Json.object();
      names.forEach(folders.putArray("folders")::add);
      String asked = scanned.question(Json.array(), folders, json);
      return scanned.planner().partitions(asked, query, scanned.root());
    });
    return found == null ? null : chosen(Json.read(found), columns, 0);
  }

  static boolean isAmong(Expression one, List<? extends Expression> these) {
    return these.stream().anyMatch(one::semanticEquals);
  }

  /** The partition columns, in the order of folders. */
  private static List<Attribute> columns(LogicalRelation scan, Scanned scanned) {
    String[] names = scanned.base().partitionSchema().fieldNames();
    var found = Stream.of(names)
                    .flatMap(
                        name
                        -> Scala.<Attribute>stream(scan.output())
                               .filter(column -> column.name().equals(name)))
                    .toList();
    if (found.size() != names.length) throw new IllegalStateException("partition columns");
    return found;
  }

  private static Expression chosen(JsonNode choice, List<Attribute> columns, int at) {
    Attribute column = columns.get(at);
    Expression found = null;
    for (JsonNode pair : choice) {
      Expression one = values(pair.get(0), column);
      JsonNode next = pair.get(1);
      if (next.size() > 0) one = new And(one, chosen(next, columns, at + 1));
      found = found == null ? one : new Or(found, one);
    }
    // A condition without a column is none of partitions.
    return found == null ? new And(new IsNull(column), new IsNotNull(column)) : found;
  }

  private static Expression values(JsonNode values, Expression column) {
    if (values.isObject()) {
      return new And(
          new GreaterThanOrEqual(column, literal(values.get("first"), column)),
          new LessThanOrEqual(column, literal(values.get("last"), column)));
    }
    var listed = new ArrayList<Expression>();
    boolean hasNull = false;
    for (JsonNode value : values) {
      if (value.isNull())
        hasNull = true;
      else
        listed.add(literal(value, column));
    }
    Expression among = listed.size() == 1 ? (Expression) new EqualTo(column, listed.get(0))
                                          : new In(column, Scala.listed(listed));
    if (!hasNull) return among;
    return listed.isEmpty() ? new IsNull(column) : new Or(new IsNull(column), among);
  }

  /**
   * The value that a folder's text has.
   *
   * Throws IllegalArgumentException: only Spark can tell.
   */
  private static Expression literal(JsonNode text, Expression column) {
    DataType type = column.dataType();
    return Literal.create(value(text.textValue(), type.catalogString()), type);
  }

  private static Object value(String text, String type) {
    if (type.equals("string")) return UTF8String.fromString(text);
    if (type.equals("date") && text.matches("[0-9]{4}-[0-9]{2}-[0-9]{2}")) {
      return (int) LocalDate.parse(text).toEpochDay();
    }
    boolean isNumber = text.matches("-?[0-9]{1,18}");
    if (isNumber && type.equals("int")) return Integer.valueOf(text);
    if (isNumber && type.equals("bigint")) return Long.valueOf(text);
    throw new IllegalArgumentException("the folder '" + text + "' of type " + type);
  }
}
