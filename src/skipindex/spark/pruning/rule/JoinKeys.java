package skipindex;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The keys that a column of a scan needs to have, because the scan is joined.
 *
 * A row of an inner or semi join has a key that the other side has. If the other side is
 * small and filtered, its keys are computed when the scan is planned, and files without any
 * of them are left out. The plan itself does not change.
 */
class JoinKeys {
    /** The other side has at most one byte for so many of the scan's. */
    static final long MIN_RATIO = 4L;
    static final long MAX_BYTES = 64L << 20;
    static final int MAX_KEYS = 200000;

    final String column;
    /** The other side as a folder and conditions, in JSON; null if it is more than that. */
    final String dimension;
    private final boolean isSmall;
    private final Attribute key;
    private final LogicalPlan side;
    private final SessionState session;

    private JoinKeys(
            String column,
            Attribute key,
            LogicalPlan side,
            boolean isSmall,
            SessionState session,
            PlannerCalls planner) {
        this.column = column;
        this.key = key;
        this.side = side;
        this.isSmall = isSmall;
        this.session = session;
        this.dimension = dimensionOf(side, key, planner);
    }

    private static String dimensionOf(LogicalPlan side, Attribute key, PlannerCalls planner) {
        try {
            return Dimension.json(side, key, planner);
        } catch (Exception notListed) {
            return null;
        }
    }

    /** Tell every scan below a plan which keys its columns need to have. */
    static void attach(LogicalPlan plan, SessionState session) {
        attach(plan, new ArrayList(), session);
    }

    /** needed: pairs of a column, and of a key that it equals in all rows that count. */
    private static void attach(LogicalPlan node, List needed, SessionState session) {
        if (node instanceof LogicalRelation) {
            attachTo((LogicalRelation) node, needed, session);
        } else if (node instanceof Join && node.deterministic()) {
            Join join = (Join) node;
            List left = new ArrayList();
            List right = new ArrayList();
            String type = join.joinType().toString();
            boolean isInner = type.equals("Inner") || type.equals("Cross");
            if (isInner || type.equals("LeftSemi") || type.equals("LeftAnti")
                || type.equals("LeftOuter")) left.addAll(needed);
            if (isInner || type.equals("RightOuter")) right.addAll(needed);
            if (join.condition().isDefined()) {
                ArrayList conjuncts = new ArrayList();
                SkipRule.split((Expression) join.condition().get(), conjuncts);
                for (int i = 0; i < conjuncts.size(); i++) {
                    if (!(conjuncts.get(i) instanceof EqualTo)) continue;
                    EqualTo equal = (EqualTo) conjuncts.get(i);
                    boolean ofLeft = isInner || type.equals("LeftSemi") || type.equals("RightOuter");
                    boolean ofRight = isInner || type.equals("LeftOuter");
                    if (ofLeft) add(left, equal, join.left(), join.right());
                    if (ofRight) add(right, equal, join.right(), join.left());
                }
            }
            attach(join.left(), left, session);
            attach(join.right(), right, session);
        } else {
            // In these every row stands for itself, so that rows may go before them, unless
            // a function counts the rows, as monotonically_increasing_id does.
            boolean isByRow = (node instanceof Project || node instanceof Filter
                || node instanceof SubqueryAlias) && node.deterministic();
            scala.collection.Iterator children = node.children().iterator();
            while (children.hasNext()) {
                attach((LogicalPlan) children.next(), isByRow ? needed : new ArrayList(), session);
            }
        }
    }

    private static void add(List needed, EqualTo equal, LogicalPlan near, LogicalPlan far) {
        Attribute one = attribute(equal.left());
        Attribute other = attribute(equal.right());
        if (one == null || other == null) return;
        if (!near.outputSet().contains(one)) {
            Attribute swapped = one;
            one = other;
            other = swapped;
        }
        boolean isAsked = near.outputSet().contains(one) && far.outputSet().contains(other);
        if (isAsked && isKey(one.dataType()) && isFiltered(far) && isRepeatable(far)) {
            needed.add(new Object[] {one, other, far});
        }
    }

    /** A column, also one that is widened from an integer to a larger one. */
    private static Attribute attribute(Expression expression) {
        if (expression instanceof Cast && isInteger(((Cast) expression).child().dataType())
            && expression.dataType() instanceof LongType) {
            return attribute(((Cast) expression).child());
        }
        return expression instanceof AttributeReference ? (Attribute) expression : null;
    }

    private static boolean isInteger(DataType type) {
        return type instanceof LongType || type instanceof IntegerType
            || type instanceof ShortType || type instanceof ByteType;
    }

    private static boolean isKey(DataType type) {
        return isInteger(type) || type.catalogString().equals("string");
    }

    /** Whether a condition is asked of some scan, beside that there is a value. */
    private static boolean isFiltered(LogicalPlan node) {
        if (node instanceof Filter) {
            ArrayList conjuncts = new ArrayList();
            SkipRule.split(((Filter) node).condition(), conjuncts);
            for (int i = 0; i < conjuncts.size(); i++) {
                if (!(conjuncts.get(i) instanceof IsNotNull)) return true;
            }
        }
        if (node instanceof LocalRelation) return true;
        scala.collection.Iterator children = node.children().iterator();
        while (children.hasNext()) if (isFiltered((LogicalPlan) children.next())) return true;
        return false;
    }

    /** Whether the plan has the same rows each time that it runs over the same files. */
    private static boolean isRepeatable(LogicalPlan node) {
        boolean isKnown = node instanceof Project || node instanceof Filter
            || node instanceof SubqueryAlias || node instanceof Join
            || node instanceof LocalRelation || isGrouping(node) || isOfFiles(node);
        if (!isKnown || !node.deterministic()) return false;
        scala.collection.Iterator expressions = node.expressions().iterator();
        while (expressions.hasNext()) {
            if (SubqueryExpression.hasSubquery((Expression) expressions.next())) return false;
        }
        scala.collection.Iterator children = node.children().iterator();
        while (children.hasNext()) if (!isRepeatable((LogicalPlan) children.next())) return false;
        return true;
    }

    private static boolean isOfFiles(LogicalPlan node) {
        if (!(node instanceof LogicalRelation)) return false;
        LogicalRelation scan = (LogicalRelation) node;
        return !scan.isStreaming() && scan.relation() instanceof HadoopFsRelation;
    }

    /** Distinct values: what an aggregate computes beyond them may depend on the order. */
    private static boolean isGrouping(LogicalPlan node) {
        if (!(node instanceof Aggregate)) return false;
        scala.collection.Iterator results = ((Aggregate) node).aggregateExpressions().iterator();
        while (results.hasNext()) if (!(results.next() instanceof AttributeReference)) return false;
        return true;
    }

    private static void attachTo(LogicalRelation scan, List needed, SessionState session) {
        if (!(scan.relation() instanceof HadoopFsRelation)) return;
        HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
        if (!(relation.location() instanceof SkippingFileIndex)) return;
        SkippingFileIndex index = (SkippingFileIndex) relation.location();
        if (index.hasKeys()) return; // the rule saw the plan before
        ArrayList keys = new ArrayList();
        for (int i = 0; i < needed.size(); i++) {
            Object[] one = (Object[]) needed.get(i);
            LogicalPlan side = (LogicalPlan) one[2];
            String column = nameIn(scan, (Attribute) one[0]);
            scala.math.BigInt bytes = side.stats().sizeInBytes();
            boolean isSmall = bytes.isValidLong() && bytes.toLong() <= MAX_BYTES
                && bytes.toLong() * MIN_RATIO <= index.base.sizeInBytes();
            if (column == null) continue;
            JoinKeys found = new JoinKeys(
                column, (Attribute) one[1], side, isSmall, session, index.planner);
            // A large side is of use only if its attributes are indexed with the scan's rows.
            boolean isUsed = isSmall || found.dimension != null
                && index.planner.usesOf(index.root, found).indexOf('a') >= 0;
            if (isUsed) keys.add(found);
        }
        index.setKeys(keys);
    }

    /** The name that the relation has for a column of the scan's output. */
    static String nameIn(LogicalRelation scan, Attribute wanted) {
        scala.collection.Iterator output = scan.output().iterator();
        while (output.hasNext()) {
            Attribute one = (Attribute) output.next();
            if (one.exprId().equals(wanted.exprId())) return one.name();
        }
        return null;
    }

    /** The keys as a list in JSON; null if there are too many. */
    String json() {
        if (!isSmall) return null;
        ArrayList only = new ArrayList();
        only.add(key);
        LogicalPlan keys = new Project(TO_SEQ(only), side);
        InternalRow[] rows = session
            .executePlan(keys, CommandExecutionMode$.MODULE$.SKIP())
            .executedPlan().executeTake(MAX_KEYS + 1);
        if (rows.length > MAX_KEYS) return null;
        DataType type = key.dataType();
        HashSet seen = new HashSet();
        StringBuilder text = new StringBuilder("[");
        for (int i = 0; i < rows.length; i++) {
            if (rows[i].isNullAt(0)) continue;
            Object value = rows[i].get(0, type);
            if (type instanceof StringType) {
                String string = value.toString();
                // Bytes that are no UTF-8 have no text of their own.
                if (!UTF8String.fromString(string).equals(value)) return null;
                value = string;
            }
            if (!seen.add(value)) continue;
            if (seen.size() > 1) text.append(',');
            if (type instanceof StringType) Question.quote(text, (String) value);
            else text.append(value);
        }
        return text.append(']').toString();
    }
}
