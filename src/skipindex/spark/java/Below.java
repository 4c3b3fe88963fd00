package skipindex;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.*;
import scala.collection.immutable.Seq;

/**
 * A scan in which files are skipped, below projections and a condition.
 *
 * projects: from the top; may be none.
 * filter: null if there is none.
 */
record Below(List<Project> projects, Filter filter, LogicalRelation scan, SkippingFileIndex index) {
  /** What is below a node; null if it is anything else. */
  static Below of(LogicalPlan top) {
    var projects = new ArrayList<Project>();
    LogicalPlan node = top;
    for (; node instanceof Project project; node = project.child()) projects.add(project);
    Filter filter = node instanceof Filter one ? one : null;
    if (filter != null) node = filter.child();
    SkippingFileIndex index = SkipRule.indexOf(node);
    return index == null ? null : new Below(projects, filter, (LogicalRelation) node, index);
  }

  /** All that is known of the rows that count. */
  Seq<Expression> conjuncts() {
    return normalized(filter == null ? List.of() : SkipRule.split(filter.condition()), scan);
  }

  /** Conjuncts with the names that the scan has for its columns. */
  static Seq<Expression> normalized(List<Expression> conjuncts, LogicalPlan scan) {
    Seq<Attribute> output = Scala.kept(scan.output());
    return Scala.kept(DataSourceStrategy$.MODULE$.normalizeExprs(Scala.listed(conjuncts), output));
  }

  /** The scan's own attribute that a column above is; null if it is computed. */
  Attribute column(Expression above) {
    Expression column = above;
    for (Project project : projects) column = source(column, project);
    return columnOf(scan, column);
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

  /** The same above another scan. */
  LogicalPlan above(LogicalPlan other) {
    LogicalPlan plan = filter == null ? other : Change.above(filter, other);
    for (int i = projects.size() - 1; i >= 0; i--) plan = Change.above(projects.get(i), plan);
    return plan;
  }
}
