package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * The rows of a scan that a query needs: the first of an order, or any so many.
 *
 * A file is not needed if even its best row comes after enough rows of other files that
 * certainly match. Ties are read, so that Spark chooses among the same rows. Any rows do
 * only where the query makes nothing but constants of them, as EXISTS does.
 */
class TopRows {
  static final String ENABLED = "skipindex.firstRows";
  private static final String[] LENIENT = {"ignoreCorruptFiles", "ignoreMissingFiles"};

  /** From so many rows on Spark sorts all of them. */
  private static final String SORTED = "spark.sql.execution.topKSortFallbackThreshold";

  /** Of the scan, which does not know yet what is needed. */
  final SkippingFileIndex index;

  /** All that a row has to fulfil. */
  final Seq<Expression> conjuncts;

  /** The projection to constants; null where rows are told apart. */
  final Project constants;

  final long n;
  private final Attribute column;
  private final SortOrder order;

  private TopRows(
      SkippingFileIndex index, Seq<Expression> conjuncts, Project constants, long n,
      Attribute column, SortOrder order) {
    this.index = index;
    this.conjuncts = conjuncts;
    this.constants = constants;
    this.n = n;
    this.column = column;
    this.order = order;
  }

  /** The plan in which scans below a LIMIT, in subqueries too, know which rows it needs. */
  static LogicalPlan in(LogicalPlan plan) {
    if (!PlannerCalls.isSet(ENABLED)) return plan;
    return new Limits().downWithSubqueries(plan);
  }

  private static class Limits extends Change {
    @Override
    LogicalPlan of(Object node) {
      if (!(node instanceof GlobalLimit)) return null;
      TopRows first = TopRows.of((GlobalLimit) node);
      return first == null ? null : new Below(first).down((GlobalLimit) node);
    }
  }

  /** Tells the one scan below a limit. */
  private static class Below extends Change {
    private final TopRows first;

    Below(TopRows first) {
      this.first = first;
    }

    @Override
    LogicalPlan of(Object node) {
      if (!(node instanceof LogicalRelation)) return null;
      return SkipRule.withIndex((LogicalRelation) node, first.index.withFirst(first));
    }
  }

  /** The rows of a scan that a LIMIT needs; null if it may need all. */
  static TopRows of(GlobalLimit limit) {
    if (!limit.deterministic()) return null;
    // Spark writes LIMIT n OFFSET m so that every task gives n + m rows.
    long n = number(limit.limitExpr());
    LogicalPlan node = limit.child();
    if (node instanceof Offset) {
      n += number(((Offset) node).offsetExpr());
      node = ((Offset) node).child();
    }
    if (!(node instanceof LocalLimit)) return null;
    if (number(((LocalLimit) node).limitExpr()) != n) return null;
    node = ((LocalLimit) node).child();
    Project constants = isConstant(node) ? (Project) node : null;
    while (node instanceof Project) node = ((Project) node).child();
    SortOrder order = null;
    if (node instanceof Sort) {
      Sort sort = (Sort) node;
      long sorted = Long.parseLong(SQLConf.get().getConfString(SORTED));
      if (!sort.global() || n >= sorted) return null;
      order = sort.order().apply(0);
      node = sort.child();
    } else if (constants == null)
      return null;
    Expression key = order == null ? null : order.child();
    for (; node instanceof Project; node = ((Project) node).child()) {
      if (key != null) key = source(key, (Project) node);
      if (key == null && order != null) return null;
    }
    List<Expression> split = new ArrayList<>();
    if (node instanceof Filter) {
      SkipRule.split(((Filter) node).condition(), split);
      node = ((Filter) node).child();
    }
    SkippingFileIndex index = SkipRule.indexOf(node);
    if (n < 1 || index == null || index.hasKeys() || isLenient(index)) return null;
    LogicalRelation scan = (LogicalRelation) node;
    Attribute column = key == null ? null : columnOf(scan, key);
    if (order != null && column == null) return null;
    Seq<Expression> conjuncts = normalized(split, scan);
    return new TopRows(index, conjuncts, order == null ? constants : null, n, column, order);
  }

  /** Conjuncts with the names that the scan has for its columns. */
  static Seq<Expression> normalized(List<Expression> conjuncts, LogicalRelation scan) {
    Seq<Attribute> output = Scala.kept(scan.output());
    return Scala.kept(
        DataSourceStrategy$.MODULE$.normalizeExprs(Scala.<Expression>listed(conjuncts), output));
  }

  /** A literal number; one that no number is equal to for all else. */
  private static long number(Expression expression) {
    Object value = expression instanceof Literal ? ((Literal) expression).value() : null;
    return value instanceof Integer ? ((Integer) value).longValue() : Long.MIN_VALUE / 4;
  }

  /** Whether all rows are the same, whatever the files hold. */
  private static boolean isConstant(LogicalPlan node) {
    if (!(node instanceof Project)) return false;
    for (Object one : Scala.each(((Project) node).projectList())) {
      if (!(one instanceof Alias) || !((Alias) one).child().foldable()) return false;
    }
    return true;
  }

  /** What a column of a projection's output is below it; null if it is computed there. */
  static Expression source(Expression key, Project project) {
    if (!(key instanceof AttributeReference)) return null;
    for (NamedExpression one : Scala.each(project.projectList())) {
      if (!one.exprId().equals(((Attribute) key).exprId())) continue;
      return one instanceof Alias ? ((Alias) one).child() : (Expression) one;
    }
    return null;
  }

  /** The scan's own attribute, whose metadata tells how the column is read. */
  static Attribute columnOf(LogicalRelation scan, Expression key) {
    if (!(key instanceof AttributeReference)) return null;
    for (Attribute one : Scala.each(scan.output())) {
      if (one.exprId().equals(((Attribute) key).exprId())) return one;
    }
    return null;
  }

  /** Whether Spark leaves out files that it cannot read, so that rows may be missing. */
  static boolean isLenient(SkippingFileIndex index) {
    for (int i = 0; i < LENIENT.length; i++) {
      String name = "spark.sql.files." + LENIENT[i];
      if (!SQLConf.get().getConfString(name, "false").equalsIgnoreCase("false")) return true;
      if (!index.scanned.reader.getConfString(name, "false").equalsIgnoreCase("false")) return true;
      for (String option : Scala.each(index.scanned.options.keys())) {
        if (LENIENT[i].equalsIgnoreCase(option)) return true;
      }
    }
    return false;
  }

  /** The member of a question. */
  ObjectNode json() {
    ObjectNode question = Json.object();
    ObjectNode first = question.putObject("first").put("n", n);
    if (order == null) {
      first.putNull("order");
    } else {
      first.putObject("order")
          .put("column", ExpressionJson.json(Scala.<Expression>seq(column)))
          .put("direction", order.direction().sql())
          .put("nulls", order.nullOrdering().sql());
    }
    return question;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof TopRows)) return false;
    TopRows rows = (TopRows) other;
    return json().equals(rows.json())
        && ExpressionJson.json(conjuncts).equals(ExpressionJson.json(rows.conjuncts));
  }

  @Override
  public int hashCode() {
    return Long.hashCode(n);
  }
}
