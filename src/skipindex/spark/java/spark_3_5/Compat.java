package skipindex;

import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;

/** What differs between versions of Spark: this is 3.5. */
final class Compat {
  private Compat() {}

  static LogicalRelation withRelation(LogicalRelation scan, HadoopFsRelation relation) {
    return scan.copy(relation, scan.output(), scan.catalogTable(), scan.isStreaming());
  }

  static SparkSessionExtensions extensions(SparkSession session) {
    return session.extensions();
  }

  static ExperimentalMethods experimental(SparkSession session) {
    return session.experimental();
  }

  static SessionState state(SparkSession session) {
    return session.sessionState();
  }
}
