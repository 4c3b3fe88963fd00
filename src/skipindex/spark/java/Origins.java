package skipindex;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Whether a plan tells which files its rows come from. */
final class Origins {
  /** What the metadata of an attribute has that is a column of metadata. */
  private static final String OF_METADATA = "__metadata_col";

  private Origins() {}

  static boolean areToldBy(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) {
      for (Attribute one : Scala.each(plan.output()))
        if (one.metadata().contains(OF_METADATA)) return true;
    }
    for (Expression one : Scala.each(plan.expressions()))
      if (areToldBy(one)) return true;
    for (LogicalPlan one : Scala.each(plan.children()))
      if (areToldBy(one)) return true;
    return false;
  }

  private static boolean areToldBy(Expression expression) {
    boolean isName = expression instanceof InputFileName;
    boolean isBlock = expression instanceof InputFileBlockStart
        || expression instanceof InputFileBlockLength;
    if (isName || isBlock) return true;
    if (expression instanceof SubqueryExpression) {
      if (areToldBy(((SubqueryExpression) expression).plan())) return true;
    }
    for (Expression one : Scala.each(expression.children()))
      if (areToldBy(one)) return true;
    return false;
  }
}
