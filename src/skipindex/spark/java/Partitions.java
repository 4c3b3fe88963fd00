package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The condition on partition columns that a condition on other columns implies.
 *
 * What is declared of a catalog's table speaks of the values that the catalog has for a
 * partition, wherever its files are.
 */
class Partitions {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** The condition for a scan, by the folders of its partitions; null if all are needed. */
    static Expression condition(
            LogicalRelation scan, Scanned scanned, SEQ conjuncts, HashSet names, Query query)
            throws java.io.IOException {
        ArrayList columns = columns(scan, scanned);
        ArrayList ofFiles = ofFiles(conjuncts, columns);
        if (ofFiles.isEmpty()) return null;
        String json = ExpressionJson.json(TO_SEQ(ofFiles));
        Object key = Arrays.asList(new Object[] {scanned.question("", "", json), names});
        byte[] found = (byte[]) query.get(key);
        if (found == null) {
            String asked = scanned.question("", folders(names), json);
            found = scanned.planner.partitions(asked, query, scanned.root);
            query.put(key, found);
        }
        return found.length == 0 ? null : chosen(JSON.readTree(found), columns, 0);
    }

    /** The conjuncts that tell more than which partitions are needed. */
    private static ArrayList ofFiles(SEQ conjuncts, ArrayList columns) {
        ArrayList found = new ArrayList();
        scala.collection.Iterator each = conjuncts.iterator();
        while (each.hasNext()) {
            Expression one = (Expression) each.next();
            boolean isOfFiles = false;
            scala.collection.Iterator references = one.references().iterator();
            while (references.hasNext() && !isOfFiles) {
                Expression column = (Expression) references.next();
                isOfFiles = true;
                for (int i = 0; i < columns.size() && isOfFiles; i++) {
                    isOfFiles = !column.semanticEquals((Expression) columns.get(i));
                }
            }
            if (isOfFiles) found.add(one);
        }
        return found;
    }

    /** The member of a question that names the folders of partitions. */
    private static String folders(HashSet names) {
        StringBuilder text = new StringBuilder(",\"folders\":[");
        java.util.Iterator each = names.iterator();
        while (each.hasNext()) {
            Question.quote(text, (String) each.next());
            if (each.hasNext()) text.append(',');
        }
        return text.append(']').toString();
    }

    /** The partition columns, in the order of folders. */
    private static ArrayList columns(LogicalRelation scan, Scanned scanned) {
        ArrayList found = new ArrayList();
        StructField[] fields = scanned.base.partitionSchema().fields();
        for (int i = 0; i < fields.length; i++) {
            scala.collection.Iterator each = scan.output().iterator();
            while (each.hasNext()) {
                Attribute column = (Attribute) each.next();
                if (column.name().equals(fields[i].name())) found.add(column);
            }
        }
        if (found.size() != fields.length) throw new IllegalStateException("partition columns");
        return found;
    }

    private static Expression chosen(JsonNode choice, ArrayList columns, int at) {
        Expression column = (Expression) columns.get(at);
        Expression found = null;
        for (int i = 0; i < choice.size(); i++) {
            JsonNode pair = (JsonNode) choice.get(i);
            Expression one = values((JsonNode) pair.get(0), column);
            JsonNode next = (JsonNode) pair.get(1);
            if (next.size() > 0) one = new And(one, chosen(next, columns, at + 1));
            found = found == null ? one : new Or(found, one);
        }
        // A condition without a column is none of partitions.
        return found == null ? new And(new IsNull(column), new IsNotNull(column)) : found;
    }

    private static Expression values(JsonNode values, Expression column) {
        if (values.isObject()) {
            return new And(
                new GreaterThanOrEqual(column, literal((JsonNode) values.get("first"), column)),
                new LessThanOrEqual(column, literal((JsonNode) values.get("last"), column)));
        }
        ArrayList listed = new ArrayList();
        boolean hasNull = false;
        for (int i = 0; i < values.size(); i++) {
            JsonNode value = (JsonNode) values.get(i);
            if (value.isNull()) hasNull = true;
            else listed.add(literal(value, column));
        }
        Expression among = listed.size() == 1
            ? (Expression) new EqualTo(column, (Expression) listed.get(0))
            : new In(column, TO_SEQ(listed));
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
            return Integer.valueOf((int) java.time.LocalDate.parse(text).toEpochDay());
        }
        boolean isNumber = text.matches("-?[0-9]{1,18}");
        if (isNumber && type.equals("int")) return Integer.valueOf(text);
        if (isNumber && type.equals("bigint")) return Long.valueOf(text);
        throw new IllegalArgumentException("the folder '" + text + "' of type " + type);
    }
}
