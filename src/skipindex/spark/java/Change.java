package skipindex;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** What Spark does to the nodes of a plan, and to the expressions of a node. */
@SuppressWarnings({"rawtypes", "serial", "unchecked"}) // Scala's types say more than Java's can
abstract class Change extends AbstractPartialFunction {
  /** The node in its place; null if it stays. */
  abstract Object of(Object node);

  @Override
  public boolean isDefinedAt(Object node) {
    return true;
  }

  @Override
  public Object applyOrElse(Object node, Function1 otherwise) {
    Object changed = of(node);
    return changed == null ? otherwise.apply(node) : changed;
  }

  LogicalPlan down(LogicalPlan plan) {
    return plan.transformDown(this);
  }

  LogicalPlan downWithSubqueries(LogicalPlan plan) {
    return plan.transformDownWithSubqueries(this);
  }

  LogicalPlan expressionsDown(LogicalPlan plan) {
    return plan.transformExpressionsDown(this);
  }
}
