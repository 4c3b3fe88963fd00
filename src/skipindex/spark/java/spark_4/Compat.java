package skipindex;

import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;

/** What differs between versions of Spark: this is 4.0 to 4.3. */
final class Compat {
  private Compat() {}

  static LogicalRelation withRelation(LogicalRelation scan, HadoopFsRelation relation) {
    return scan.copy(
        relation, scan.output(), scan.catalogTable(), scan.isStreaming(), scan.stream());
  }

  static SparkSessionExtensions extensions(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).extensions();
  }

  static ExperimentalMethods experimental(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).experimental();
  }

  static SessionState state(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
  }
}
