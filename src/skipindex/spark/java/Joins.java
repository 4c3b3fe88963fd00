package skipindex;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;

/**
 * Finds the scans whose rows need a key that the other side of a join has.
 *
 * A row of an inner or semi join has a key that the other side has. If that is a Dimension,
 * the planner reads its keys, and files without any of them are left out. The plan itself
 * does not change.  A side has fewer bytes than the scan that gets its keys, so that small
 * tables stay as they are, and Spark finds their scans equal.
 */
class Joins {
  /** Joins on the way from a dimension to the one whose condition it has to meet. */
  private static final int MAX_DEPTH = 3;

  /** The file indexes of scans that Spark reads for more than one purpose. */
  private final Set<FileIndex> shared;

  /** The file indexes that Spark takes for equal though they list other files. */
  private final Set<FileIndex> unsure;

  private Joins(Set<FileIndex> shared, Set<FileIndex> unsure) {
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
  static LogicalPlan withKeys(LogicalPlan plan, Set<FileIndex> shared, Set<FileIndex> unsure) {
    return new Joins(shared, unsure).withKeys(plan, new ArrayList<Needed>());
  }

  /** needed: what each row that counts has to have. */
  private LogicalPlan withKeys(LogicalPlan node, List<Needed> needed) {
    if (node instanceof LogicalRelation) return scanWithKeys((LogicalRelation) node, needed);
    List<LogicalPlan> children = new ArrayList<>();
    if (node instanceof Join && node.deterministic()) {
      Join join = (Join) node;
      children.add(withKeys(join.left(), below(join, true, needed)));
      children.add(withKeys(join.right(), below(join, false, needed)));
    } else {
      // In these every row stands for itself, so that rows may go before them, unless
      // a function counts the rows, as monotonically_increasing_id does.
      boolean isByRow = (node instanceof Project || node instanceof Filter
                         || node instanceof SubqueryAlias)
          && node.deterministic();
      List<Needed> below = isByRow ? below(node, needed) : new ArrayList<Needed>();
      for (LogicalPlan one : Scala.each(node.children())) children.add(withKeys(one, below));
    }
    return children.isEmpty() ? node : node.withNewChildren(Scala.listed(children));
  }

  /** A key of the other side that equals a column in all rows that count. */
  static class Needed {
    final Attribute column;
    final Attribute key;
    final LogicalPlan side;

    /** What rows of the side need to have, by joins around this one. */
    final List<Needed> ofSide;

    Needed(Attribute column, Attribute key, LogicalPlan side, List<Needed> ofSide) {
      this.column = column;
      this.key = key;
      this.side = side;
      this.ofSide = ofSide;
    }

    private int depth() {
      int depth = 0;
      for (Needed one : ofSide) depth = Math.max(depth, one.depth());
      return depth + 1;
    }
  }

  /** What rows below a node have to have, if each of them stands for itself there. */
  static List<Needed> below(LogicalPlan node, List<Needed> needed) {
    if (!(node instanceof Project)) return needed;
    List<Needed> below = new ArrayList<>();
    for (Needed one : needed) {
      Expression source = TopRows.source(one.column, (Project) node);
      if (!(source instanceof Attribute)) continue;
      below.add(new Needed((Attribute) source, one.key, one.side, one.ofSide));
    }
    return below;
  }

  /** What rows of one side of a join have to have, so that a row that counts comes of them. */
  static List<Needed> below(Join join, boolean isLeft, List<Needed> needed) {
    String type = join.joinType().toString();
    boolean isInner = type.equals("Inner") || type.equals("Cross");
    boolean isSemi = type.equals("LeftSemi");
    boolean isOuter = type.equals(isLeft ? "LeftOuter" : "RightOuter");
    boolean stays = isInner || isOuter || isLeft && (isSemi || type.equals("LeftAnti"));
    List<Needed> below = stays ? new ArrayList<>(needed) : new ArrayList<Needed>();
    boolean meets = isInner || isLeft && isSemi || type.equals(isLeft ? "RightOuter" : "LeftOuter");
    if (!meets || join.condition().isEmpty()) return below;
    LogicalPlan near = isLeft ? join.left() : join.right();
    LogicalPlan far = isLeft ? join.right() : join.left();
    List<Needed> ofFar = new ArrayList<>();
    for (Needed one : isSemi ? new ArrayList<Needed>() : needed) {
      if (far.outputSet().contains(one.column) && one.depth() < MAX_DEPTH) ofFar.add(one);
    }
    List<Expression> conjuncts = new ArrayList<>();
    SkipRule.split(join.condition().get(), conjuncts);
    for (Expression one : conjuncts) {
      if (one instanceof EqualTo) add(below, (EqualTo) one, near, far, ofFar);
    }
    return below;
  }

  /** Adds what rows of the near side need to have, as a column of each side is equal. */
  private static void add(
      List<Needed> needed, EqualTo equal, LogicalPlan near, LogicalPlan far, List<Needed> ofFar) {
    Attribute one = attribute(equal.left());
    Attribute other = attribute(equal.right());
    if (one == null || other == null || !isKey(one.dataType())) return;
    AttributeSet ours = near.outputSet();
    AttributeSet theirs = far.outputSet();
    if (ours.contains(one) && theirs.contains(other))
      needed.add(new Needed(one, other, far, ofFar));
    else if (ours.contains(other) && theirs.contains(one))
      needed.add(new Needed(other, one, far, ofFar));
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
    return isInteger(type) || type instanceof DateType || type instanceof DecimalType
        || type.catalogString().equals("string");
  }

  /** Files that were listed; a catalog's folders are listed anew by each scan. */
  static boolean isOfFiles(LogicalPlan node) {
    if (!(node instanceof LogicalRelation)) return false;
    LogicalRelation scan = (LogicalRelation) node;
    if (scan.isStreaming() || !(scan.relation() instanceof HadoopFsRelation)) return false;
    FileIndex location = SkipRule.baseOf(scan);
    return !location.getClass().getSimpleName().equals("CatalogFileIndex");
  }

  private LogicalRelation scanWithKeys(LogicalRelation scan, List<Needed> needed) {
    SkippingFileIndex index = SkipRule.indexOf(scan);
    if (index == null || shared.contains(index.scanned.base)) return scan;
    List<Dimension> keys = Dimension.of(scan, needed, unsure, index);
    return keys.isEmpty() ? scan : SkipRule.withIndex(scan, index.withKeys(keys));
  }

  /** The name that the relation has for a column of the scan's output. */
  static String nameIn(LogicalRelation scan, Attribute wanted) {
    Attribute found = TopRows.columnOf(scan, wanted);
    return found == null ? null : found.name();
  }
}
