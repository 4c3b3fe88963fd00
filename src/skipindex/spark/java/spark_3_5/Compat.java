package skipindex;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** What differs between versions of Spark: this is 3.5. */
final class Compat {
  private Compat() {}

  static LogicalRelation withRelation(LogicalRelation scan, HadoopFsRelation relation) {
    return scan.copy(relation, scan.output(), scan.catalogTable(), scan.isStreaming());
  }

  /** The session as the one class that has all of its parts. */
  static SparkSession classic(SparkSession session) {
    return session;
  }
}
