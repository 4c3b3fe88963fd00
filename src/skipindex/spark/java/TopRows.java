package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
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
 *
 * index: of the scan, which does not know yet what is needed.
 * conjuncts: all that a row has to fulfil.
 * constants: the projection to constants; null where rows are told apart.
 */
record TopRows(
    SkippingFileIndex index, Seq<Expression> conjuncts, Project constants, long n, Attribute column,
    SortOrder order) {
  static final String ENABLED = "skipindex.firstRows";
  private static final List<String> LENIENT = List.of("ignoreCorruptFiles", "ignoreMissingFiles");

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
    Expression key = order == null ? null : order.child();
    for (; node instanceof Project project; node = project.child()) {
      if (key != null) key = source(key, project);
      if (key == null && order != null) return null;
    }
    List<Expression> split = List.of();
    if (node instanceof Filter filter) {
      split = SkipRule.split(filter.condition());
      node = filter.child();
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
  static Seq<Expression> normalized(List<Expression> conjuncts, LogicalPlan scan) {
    Seq<Attribute> output = Scala.kept(scan.output());
    return Scala.kept(DataSourceStrategy$.MODULE$.normalizeExprs(Scala.listed(conjuncts), output));
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

  /** What a column of a projection's output is below it; null if it is computed there. */
  static Expression source(Expression key, Project project) {
    if (!(key instanceof AttributeReference column)) return null;
    for (NamedExpression one : Scala.each(project.projectList())) {
      if (!one.exprId().equals(column.exprId())) continue;
      return one instanceof Alias alias ? alias.child() : (Expression) one;
    }
    return null;
  }

  /** The scan's own attribute, whose metadata tells how the column is read. */
  static Attribute columnOf(LogicalRelation scan, Expression key) {
    if (!(key instanceof AttributeReference column)) return null;
    return Scala.<Attribute>stream(scan.output())
        .filter(one -> one.exprId().equals(column.exprId()))
        .findFirst()
        .orElse(null);
  }

  /** Whether Spark leaves out files that it cannot read, so that rows may be missing. */
  static boolean isLenient(SkippingFileIndex index) {
    List<String> options = Scala.list(index.scanned.relation().options().keys());
    for (String one : LENIENT) {
      boolean isOption = options.stream().anyMatch(one::equalsIgnoreCase);
      if (isOption || isSet(SQLConf.get(), one) || isSet(index.scanned.reader(), one)) return true;
    }
    return false;
  }

  private static boolean isSet(SQLConf conf, String lenient) {
    String value = conf.getConfString("spark.sql.files." + lenient, "false");
    return !value.equalsIgnoreCase("false");
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
