package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * The rows of a scan that a query needs: the first of an order, or any so many.
 *
 * A file is not needed if even its best row comes after enough rows of other files that
 * certainly match. Ties are read, so that Spark chooses among the same rows. Any rows do
 * only where the query makes nothing but constants of them, as EXISTS does.
 *
 * index: of the scan, which does not know yet what is needed.
 * conjuncts: all that a row has to fulfil.
 * constants: the projection to constants; null where rows are told apart.
 */
record TopRows(
    SkippingFileIndex index, Seq<Expression> conjuncts, Project constants, long n, Attribute column,
    SortOrder order) {
  static final String ENABLED = "skipindex.firstRows";

  /** From so many rows on Spark sorts all of them. */
  private static final String SORTED = "spark.sql.execution.topKSortFallbackThreshold";

  /** The plan in which scans below a LIMIT, in subqueries too, know which rows it needs. */
  static LogicalPlan in(LogicalPlan plan) {
    if (!PlannerCalls.isSet(ENABLED)) return plan;
    return Change.downWithSubqueries(
        plan, node -> node instanceof GlobalLimit limit ? told(limit) : null);
  }

  /** Tells the one scan below a limit; null if it may need all rows. */
  private static LogicalPlan told(GlobalLimit limit) {
    TopRows first = of(limit);
    if (first == null) return null;
    var index = first.index.withFirst(first);
    return Change.down(
        limit,
        node -> node instanceof LogicalRelation scan ? SkipRule.withIndex(scan, index) : null);
  }

  /** The rows of a scan that a LIMIT needs; null if it may need all. */
  static TopRows of(GlobalLimit limit) {
    if (!limit.deterministic()) return null;
    // Spark writes LIMIT n OFFSET m so that every task gives n + m rows.
    long n = number(limit.limitExpr());
    LogicalPlan node = limit.child();
    if (node instanceof Offset offset) {
      n += number(offset.offsetExpr());
      node = offset.child();
    }
    if (!(node instanceof LocalLimit local && number(local.limitExpr()) == n)) return null;
    node = local.child();
    Project constants = node instanceof Project project && isConstant(project) ? project : null;
    while (node instanceof Project project) node = project.child();
    SortOrder order = null;
    if (node instanceof Sort sort) {
      long sorted = Long.parseLong(SQLConf.get().getConfString(SORTED));
      if (!sort.global() || n >= sorted) return null;
      order = sort.order().apply(0);
      node = sort.child();
    } else if (constants == null)
      return null;
    Below below = Below.of(node);
    if (n < 1 || below == null || below.index().hasKeys() || below.index().scanned.isLenient())
      return null;
    Attribute column = order == null ? null : below.column(order.child());
    if (order != null && column == null) return null;
    constants = order == null ? constants : null;
    return new TopRows(below.index(), below.conjuncts(), constants, n, column, order);
  }

  /** A literal number; one that no number is equal to for all else. */
  private static long number(Expression expression) {
    return expression instanceof Literal literal && literal.value() instanceof Integer value
        ? value
        : Long.MIN_VALUE / 4;
  }

  /** Whether all rows are the same, whatever the files hold. */
  private static boolean isConstant(Project project) {
    return Scala.stream(project.projectList())
        .allMatch(one -> one instanceof Alias alias && alias.child().foldable());
  }

  /** The member of a question. */
  ObjectNode json() {
    ObjectNode question = Json.object();
    ObjectNode first = question.putObject("first").put("n", n).putNull("order");
    if (order == null) return question;
    first.putObject("order")
        .put("column", ExpressionJson.json(Scala.seq(column)))
        .put("direction", order.direction().sql())
        .put("nulls", order.nullOrdering().sql());
    return question;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TopRows rows && json().equals(rows.json())
        && ExpressionJson.json(conjuncts).equals(ExpressionJson.json(rows.conjuncts));
  }

  @Override
  public int hashCode() {
    return Long.hashCode(n);
  }
}
