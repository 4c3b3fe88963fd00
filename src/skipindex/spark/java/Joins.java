package skipindex;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;

/**
 * Finds the scans whose rows need the keys that the other side of a join has.
 *
 * A row of an inner or semi join has a key that the other side has. If the other side is
 * small and filtered, files without any of its keys are left out. The plan itself does not
 * change. A side has fewer bytes to read than the scan that gets its keys, so that of two
 * scans at most one gets keys of the other.
 */
class Joins {
  static final String ENABLED = "skipindex.joinKeys";

  /** The other side has at most one byte for so many that the scan reads. */
  private static final long MIN_RATIO = 4L;

  private static final long MAX_BYTES = 64L << 20;

  private final SessionState session;

  /** The file indexes of scans that Spark reads for more than one purpose. */
  private final Set<FileIndex> shared;

  /** The file indexes that Spark takes for equal though they list other files. */
  private final Set<FileIndex> unsure;

  private Joins(SessionState session, Set<FileIndex> shared, Set<FileIndex> unsure) {
    this.session = session;
    this.shared = shared;
    this.unsure = unsure;
  }

  /**
   * The plan with scans that know which keys their columns need to have.
   *
   * plan: its scans have no keys.
   * shared: Spark's file indexes of scans that get none, so that Spark finds them equal.
   * unsure: those of scans that give none, as Spark may read another listing in their place.
   */
  static LogicalPlan withKeys(
      LogicalPlan plan, SessionState session, Set<FileIndex> shared, Set<FileIndex> unsure) {
    boolean isOff = KeyList.isPlanning() || !PlannerCalls.isSet(ENABLED);
    return isOff ? plan
                 : new Joins(session, shared, unsure).withKeys(plan, new ArrayList<Needed>());
  }

  /** needed: what each row that counts has to have. */
  private LogicalPlan withKeys(LogicalPlan node, List<Needed> needed) {
    if (node instanceof LogicalRelation) return scanWithKeys((LogicalRelation) node, needed);
    List<LogicalPlan> children = new ArrayList<>();
    if (node instanceof Join && node.deterministic()) {
      Join join = (Join) node;
      List<Needed> left = new ArrayList<>();
      List<Needed> right = new ArrayList<>();
      String type = join.joinType().toString();
      boolean isInner = type.equals("Inner") || type.equals("Cross");
      if (isInner || type.equals("LeftSemi") || type.equals("LeftAnti") || type.equals("LeftOuter"))
        left.addAll(needed);
      if (isInner || type.equals("RightOuter")) right.addAll(needed);
      if (join.condition().isDefined()) {
        List<Expression> conjuncts = new ArrayList<>();
        SkipRule.split((Expression) join.condition().get(), conjuncts);
        boolean ofLeft = isInner || type.equals("LeftSemi") || type.equals("RightOuter");
        boolean ofRight = isInner || type.equals("LeftOuter");
        if (ofLeft) add(left, conjuncts, join.left(), join.right());
        if (ofRight) add(right, conjuncts, join.right(), join.left());
      }
      children.add(withKeys(join.left(), left));
      children.add(withKeys(join.right(), right));
    } else {
      // In these every row stands for itself, so that rows may go before them, unless
      // a function counts the rows, as monotonically_increasing_id does.
      boolean isByRow = (node instanceof Project || node instanceof Filter
                         || node instanceof SubqueryAlias)
          && node.deterministic();
      for (LogicalPlan one : Scala.each(node.children())) {
        List<Needed> below = isByRow ? needed : new ArrayList<Needed>();
        children.add(withKeys(one, below));
      }
    }
    return children.isEmpty() ? node : (LogicalPlan) node.withNewChildren(Scala.listed(children));
  }

  /** A key of the other side that equals a column in all rows that count. */
  private static class Needed {
    final Attribute column;
    final Attribute key;

    /** Those of the side that are of use in this join; the side runs once for them. */
    final List<Attribute> keys;

    final LogicalPlan side;

    Needed(Attribute column, Attribute key, List<Attribute> keys, LogicalPlan side) {
      this.column = column;
      this.key = key;
      this.keys = keys;
      this.side = side;
    }
  }

  /** Adds what rows of the near side need to have, as conjuncts say that two columns are equal. */
  private static void add(
      List<Needed> needed, List<Expression> conjuncts, LogicalPlan near, LogicalPlan far) {
    if (!isFiltered(far) || !isRepeatable(far)) return;
    List<Attribute> keys = new ArrayList<>();
    for (int i = 0; i < conjuncts.size(); i++) {
      if (!(conjuncts.get(i) instanceof EqualTo)) continue;
      EqualTo equal = (EqualTo) conjuncts.get(i);
      Attribute one = attribute(equal.left());
      Attribute other = attribute(equal.right());
      if (one == null || other == null) continue;
      if (!near.outputSet().contains(one)) {
        Attribute swapped = one;
        one = other;
        other = swapped;
      }
      boolean isAsked = near.outputSet().contains(one) && far.outputSet().contains(other);
      if (!isAsked || !isKey(one.dataType())) continue;
      if (!keys.contains(other) && hasUse(one, near)) keys.add(other);
      needed.add(new Needed(one, other, keys, far));
    }
  }

  /** Whether a scan has an index that a list of keys of the column is of use for. */
  private static boolean hasUse(Attribute column, LogicalPlan node) {
    if (node instanceof LogicalRelation) {
      SkippingFileIndex index = SkipRule.indexOf((LogicalRelation) node);
      String name = index == null ? null : nameIn((LogicalRelation) node, column);
      return name != null && JoinKeys.hasUse(index, name);
    }
    for (LogicalPlan one : Scala.each(node.children())) {
      if (hasUse(column, one)) return true;
    }
    return false;
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
    return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType
        || type instanceof ByteType;
  }

  private static boolean isKey(DataType type) {
    return isInteger(type) || type.catalogString().equals("string");
  }

  /** Whether a condition is asked of some scan, beside that there is a value. */
  private static boolean isFiltered(LogicalPlan node) {
    if (node instanceof Filter) {
      List<Expression> conjuncts = new ArrayList<>();
      SkipRule.split(((Filter) node).condition(), conjuncts);
      for (int i = 0; i < conjuncts.size(); i++) {
        if (!(conjuncts.get(i) instanceof IsNotNull)) return true;
      }
    }
    if (node instanceof LocalRelation) return true;
    for (LogicalPlan one : Scala.each(node.children()))
      if (isFiltered(one)) return true;
    return false;
  }

  /** Whether the plan has the same rows each time that it runs over the same files. */
  private static boolean isRepeatable(LogicalPlan node) {
    boolean isKnown = node instanceof Project || node instanceof Filter
        || node instanceof SubqueryAlias || node instanceof Join || node instanceof LocalRelation
        || isGrouping(node) || isOfFiles(node);
    if (!isKnown || !node.deterministic()) return false;
    for (Expression one : Scala.each(node.expressions())) {
      if (SubqueryExpression.hasSubquery(one)) return false;
    }
    for (LogicalPlan one : Scala.each(node.children()))
      if (!isRepeatable(one)) return false;
    return true;
  }

  /** Files that were listed; a catalog's folders are listed anew by each scan. */
  static boolean isOfFiles(LogicalPlan node) {
    if (!(node instanceof LogicalRelation)) return false;
    LogicalRelation scan = (LogicalRelation) node;
    if (scan.isStreaming() || !(scan.relation() instanceof HadoopFsRelation)) return false;
    FileIndex location = SkipRule.baseOf(scan);
    return !location.getClass().getSimpleName().equals("CatalogFileIndex");
  }

  /** Distinct values: what an aggregate computes beyond them may depend on the order. */
  private static boolean isGrouping(LogicalPlan node) {
    if (!(node instanceof Aggregate)) return false;
    for (NamedExpression one : Scala.each(((Aggregate) node).aggregateExpressions())) {
      if (!(one instanceof AttributeReference)) return false;
    }
    return true;
  }

  private LogicalRelation scanWithKeys(LogicalRelation scan, List<Needed> needed) {
    SkippingFileIndex index = SkipRule.indexOf(scan);
    if (index == null || needed.isEmpty() || shared.contains(index.scanned.base)) return scan;
    List<JoinKeys> keys = new ArrayList<>();
    for (Needed one : needed) {
      String column = nameIn(scan, one.column);
      if (column == null || isUnsure(one.side)) continue;
      try {
        JoinKeys found = JoinKeys.of(
            index, column, one.key, one.keys, one.side, isSmall(one.side, index), session);
        if (found != null && !keys.contains(found)) keys.add(found);
      } catch (Throwable problem) {
        index.scanned.planner.report(problem);
      }
    }
    return keys.isEmpty() ? scan : SkipRule.withIndex(scan, index.withKeys(keys));
  }

  private boolean isUnsure(LogicalPlan node) {
    if (unsure.isEmpty()) return false;
    if (isOfFiles(node)) return unsure.contains(SkipRule.baseOf((LogicalRelation) node));
    for (LogicalPlan one : Scala.each(node.children()))
      if (isUnsure(one)) return true;
    return false;
  }

  /** Whether a side is worth running for its keys, and reads less than the scan. */
  private static boolean isSmall(LogicalPlan side, SkippingFileIndex index) {
    scala.math.BigInt bytes = side.stats().sizeInBytes();
    return bytes.isValidLong() && bytes.toLong() <= MAX_BYTES
        && bytes.toLong() <= index.sizeInBytes() / MIN_RATIO
        && bytesOfFiles(side) < index.sizeInBytes();
  }

  private static long bytesOfFiles(LogicalPlan node) {
    long bytes = isOfFiles(node) ? SkipRule.locationOf((LogicalRelation) node).sizeInBytes() : 0L;
    for (LogicalPlan one : Scala.each(node.children())) bytes += bytesOfFiles(one);
    return bytes;
  }

  /** The name that the relation has for a column of the scan's output. */
  static String nameIn(LogicalRelation scan, Attribute wanted) {
    for (Attribute one : Scala.each(scan.output())) {
      if (one.exprId().equals(wanted.exprId())) return one.name();
    }
    return null;
  }
}
