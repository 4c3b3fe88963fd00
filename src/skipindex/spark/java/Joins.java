package skipindex;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.types.*;

/**
 * Finds the scans whose rows need a key that the other side of a join has.
 *
 * A row of an inner or semi join has a key that the other side has. If that is a Dimension,
 * the planner reads its keys, and files without any of them are left out. The plan itself
 * does not change.  A side has fewer bytes than the scan that gets its keys, so that small
 * tables stay as they are, and Spark finds their scans equal.
 *
 * shared: the file indexes of scans that Spark reads for more than one purpose.
 * unsure: those that Spark takes for equal though they list other files.
 */
record Joins(Set<FileIndex> shared, Set<FileIndex> unsure) {
  /** Joins on the way from a dimension to the one whose condition it has to meet. */
  private static final int MAX_DEPTH = 3;

  /**
   * The plan with scans that know which keys their columns need to have.
   *
   * plan: its scans have no keys.
   * shared: Spark's file indexes of scans that get none, so that Spark finds them equal.
   * unsure: those of scans that give none, as Spark may read another listing in their place.
   */
  static LogicalPlan withKeys(LogicalPlan plan, Set<FileIndex> shared, Set<FileIndex> unsure) {
    return new Joins(shared, unsure).withKeys(plan, List.of());
  }

  /** needed: what each row that counts has to have. */
  private LogicalPlan withKeys(LogicalPlan node, List<Needed> needed) {
    if (node instanceof LogicalRelation scan) return scanWithKeys(scan, needed);
    var children = new ArrayList<LogicalPlan>();
    if (node instanceof Join join && node.deterministic()) {
      children.add(withKeys(join.left(), below(join, true, needed)));
      children.add(withKeys(join.right(), below(join, false, needed)));
    } else {
      // In these every row stands for itself, so that rows may go before them, unless
      // a function counts the rows, as monotonically_increasing_id does.
      boolean isByRow = (node instanceof Project || node instanceof Filter
                         || node instanceof SubqueryAlias)
          && node.deterministic();
      List<Needed> below = isByRow ? below(node, needed) : List.of();
      for (LogicalPlan one : Scala.each(node.children())) children.add(withKeys(one, below));
    }
    return children.isEmpty() ? node : node.withNewChildren(Scala.listed(children));
  }

  /**
   * A key of the other side that equals a column in all rows that count.
   *
   * ofSide: what rows of the side need to have, by joins around this one.
   */
  record Needed(Attribute column, Attribute key, LogicalPlan side, List<Needed> ofSide) {
    private int depth() {
      return 1 + ofSide.stream().mapToInt(Needed::depth).max().orElse(0);
    }
  }

  /** What rows below a node have to have, if each of them stands for itself there. */
  static List<Needed> below(LogicalPlan node, List<Needed> needed) {
    if (!(node instanceof Project project)) return needed;
    var below = new ArrayList<Needed>();
    for (Needed one : needed) {
      if (Below.source(one.column, project) instanceof Attribute source)
        below.add(new Needed(source, one.key, one.side, one.ofSide));
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
    var below = new ArrayList<Needed>(stays ? needed : List.of());
    boolean meets = isInner || isLeft && isSemi || type.equals(isLeft ? "RightOuter" : "LeftOuter");
    if (!meets || join.condition().isEmpty()) return below;
    LogicalPlan near = isLeft ? join.left() : join.right();
    LogicalPlan far = isLeft ? join.right() : join.left();
    List<Needed> ofFar =
        needed.stream()
            .filter(
                one -> !isSemi && far.outputSet().contains(one.column) && one.depth() < MAX_DEPTH)
            .toList();
    for (Expression one : SkipRule.split(join.condition().get())) {
      if (one instanceof EqualTo equal) add(below, equal, near, far, ofFar);
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
    if (expression instanceof Cast cast && isInteger(cast.child().dataType())
        && cast.dataType() instanceof LongType) {
      return attribute(cast.child());
    }
    return expression instanceof AttributeReference attribute ? attribute : null;
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
    FileIndex location = SkipRule.baseOf(node);
    return location != null && !node.isStreaming()
        && !SkipRule.isNamed(location, "CatalogFileIndex");
  }

  private LogicalRelation scanWithKeys(LogicalRelation scan, List<Needed> needed) {
    SkippingFileIndex index = SkipRule.indexOf(scan);
    if (index == null || shared.contains(index.scanned.base())) return scan;
    List<Dimension> keys = Dimension.of(scan, needed, unsure, index);
    return keys.isEmpty() ? scan : SkipRule.withIndex(scan, index.withKeys(keys));
  }

  /** The name that the relation has for a column of the scan's output. */
  static String nameIn(LogicalRelation scan, Attribute wanted) {
    Attribute found = Below.columnOf(scan, wanted);
    return found == null ? null : found.name();
  }
}
