package skipindex;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** A rule of Spark's optimizer. */
@SuppressWarnings({"rawtypes", "unchecked"}) // Janino makes no bridge from what Rule declares
abstract class PlanRule extends Rule {
  abstract LogicalPlan of(LogicalPlan plan);

  @Override
  public TreeNode apply(TreeNode plan) {
    return of((LogicalPlan) plan);
  }
}
