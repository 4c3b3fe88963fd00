package skipindex;

import java.util.*;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.*;
import org.apache.spark.sql.execution.metric.*;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A node above one of Spark's own, which does the work: this one shows what the planner did.
 *
 * In text it has a sentence, and in Spark's UI metrics. It goes to no executor.
 */
public abstract class Above extends SparkPlan {
  private static final long serialVersionUID = 1L;
  static final SparkStrategy STRATEGY = new Strategy();
  protected final SparkPlan child;
  private Map<String, SQLMetric> metrics;

  protected Above(SparkPlan child) {
    this.child = child;
  }

  private static class Strategy extends SparkStrategy {
    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      return plan instanceof LocalRelation rows ? LocalRows.planned(rows) : RowGroups.planned(plan);
    }
  }

  /** A node of this kind above another one. */
  abstract Above on(SparkPlan child);

  /** What the planner did; null if this is not known yet. */
  abstract String told();

  /** Three metrics, by the names that Spark's UI has for them. */
  abstract List<String> measured();

  @Override
  public String simpleString(int maxFields) {
    String told = told();
    return told == null ? nodeName() : nodeName() + ": " + told;
  }

  @Override
  public synchronized Map<String, SQLMetric> metrics() {
    if (metrics == null) {
      List<String> names = measured();
      List<SQLMetric> made = names.stream().map(this::metric).toList();
      metrics = new Map.Map3<>(
          names.get(0), made.get(0), names.get(1), made.get(1), names.get(2), made.get(2));
    }
    return metrics;
  }

  private SQLMetric metric(String name) {
    return name.startsWith("bytes") ? SQLMetrics.createSizeMetric(sparkContext(), name, 0L)
                                    : SQLMetrics.createMetric(sparkContext(), name);
  }

  /** Gives the metrics of this node, in the order of their names, values. */
  protected void show(long... values) {
    int next = 0;
    var all = new ArrayList<SQLMetric>();
    for (String name : measured()) {
      SQLMetric metric = metrics().apply(name);
      metric.set(values[next++]);
      all.add(metric);
    }
    SQLMetrics.postDriverMetricUpdates(sparkContext(), execution(), Scala.listed(all));
  }

  /** The id of the execution that this thread is of; null if it is of none. */
  protected String execution() {
    return sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
  }

  /** Called when the node below has begun. */
  protected abstract void begun();

  @Override
  public RDD<InternalRow> doExecute() {
    var rows = child.execute(); // which awaits what filters of partitions are made of
    begun();
    return rows;
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    var rows = child.executeColumnar();
    begun();
    return rows;
  }

  /** No class of this jar goes to executors. */
  protected Object writeReplace() {
    return child;
  }

  @Override
  public SparkPlan doCanonicalize() {
    return child.canonicalized();
  }

  @Override
  public Seq<Attribute> output() {
    return Scala.kept(child.output());
  }

  @Override
  public boolean supportsColumnar() {
    return child.supportsColumnar();
  }

  @Override
  public Partitioning outputPartitioning() {
    return child.outputPartitioning();
  }

  @Override
  public Seq<SparkPlan> children() {
    return Scala.seq(child);
  }

  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return on(children.apply(0));
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq<SparkPlan> children) {
    return on(children.apply(0));
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int place) {
    return child;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Above;
  }
}
