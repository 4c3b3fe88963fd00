package skipindex;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Enumeration.Value;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** A statement that Spark runs once; overloads are for the lists of Scala 2.12 and 2.13. */
public class Command extends LogicalPlan implements RunnableCommand {
  private static final long serialVersionUID = 1L;
  private final transient Statement statement;

  public Command(Statement statement) {
    this.statement = statement;
  }

  @Override
  public Seq<Attribute> output() {
    return statement.columns();
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    return statement.rows();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return Scala.none();
  }

  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    return Scala.map();
  }

  @Override
  public Seq<Value> nodePatterns() {
    return Scala.seq(TreePattern.COMMAND());
  }

  /** How Scala gives what it mixes in its value; the method above says it. */
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Value> patterns) {}

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.Seq<Value> patterns) {}

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int place) {
    return statement;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Command;
  }
}
