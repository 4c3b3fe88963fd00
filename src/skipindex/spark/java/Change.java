package skipindex;

import java.util.function.Function;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Function1;
import scala.Product;
import scala.runtime.AbstractPartialFunction;

/** What Spark does to the nodes of a plan, and to the expressions of a node. */
@SuppressWarnings({"rawtypes", "serial", "unchecked"}) // Scala's types say more than Java's can
final class Change extends AbstractPartialFunction {
  private final Function<TreeNode<?>, TreeNode<?>> of;

  private Change(Function<TreeNode<?>, TreeNode<?>> of) {
    this.of = of;
  }

  @Override
  public boolean isDefinedAt(Object node) {
    return true;
  }

  @Override
  public Object applyOrElse(Object node, Function1 otherwise) {
    Object changed = of.apply((TreeNode<?>) node);
    return changed == null ? otherwise.apply(node) : changed;
  }

  /** The plan with other nodes; the function has null for those that stay. */
  static LogicalPlan down(LogicalPlan plan, Function<TreeNode<?>, TreeNode<?>> of) {
    return plan.transformDown(new Change(of));
  }

  /** The node with another part, by its place among those that it was made of. */
  static LogicalPlan part(LogicalPlan node, int place, Object part) {
    Object[] parts = Scala.list(((Product) node).productIterator().toSeq()).toArray();
    parts[place] = part;
    return node.makeCopy(parts);
  }

  static LogicalPlan above(LogicalPlan node, LogicalPlan child) {
    return node.withNewChildren(Scala.seq(child));
  }

  static SparkPlan up(SparkPlan plan, Function<TreeNode<?>, TreeNode<?>> of) {
    return plan.transformUp(new Change(of));
  }

  static LogicalPlan downWithSubqueries(LogicalPlan plan, Function<TreeNode<?>, TreeNode<?>> of) {
    return plan.transformDownWithSubqueries(new Change(of));
  }

  static LogicalPlan upWithSubqueries(LogicalPlan plan, Function<TreeNode<?>, TreeNode<?>> of) {
    return plan.transformUpWithSubqueries(new Change(of));
  }

  static LogicalPlan expressionsDown(LogicalPlan plan, Function<TreeNode<?>, TreeNode<?>> of) {
    return plan.transformExpressionsDown(new Change(of));
  }
}
