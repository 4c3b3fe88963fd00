package skipindex;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Whether a plan tells which files its rows come from. */
final class Origins {
  /** What the metadata of an attribute has that is a column of metadata. */
  private static final String OF_METADATA = "__metadata_col";

  private Origins() {}

  static boolean areToldBy(LogicalPlan plan) {
    return plan.exists(Origins::isTold);
  }

  private static boolean isTold(LogicalPlan node) {
    return node instanceof LogicalRelation
        && Scala.stream(node.output()).anyMatch(one -> one.metadata().contains(OF_METADATA))
        || Scala.stream(node.expressions()).anyMatch(one -> one.exists(Origins::isOrigin));
  }

  private static boolean isOrigin(Expression one) {
    return one instanceof InputFileName || one instanceof InputFileBlockStart
        || one instanceof InputFileBlockLength
        || one instanceof SubqueryExpression subquery && areToldBy(subquery.plan());
  }
}
