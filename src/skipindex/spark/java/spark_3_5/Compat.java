package skipindex;

import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.*;
import scala.collection.immutable.Map;

/** What differs between versions of Spark: this is 3.5. */
final class Compat {
  /** Whether scans of Iceberg were tested with it. */
  static final boolean HAS_ICEBERG = true;

  private Compat() {}

  static LogicalRelation withRelation(LogicalRelation scan, HadoopFsRelation relation) {
    return scan.copy(relation, scan.output(), scan.catalogTable(), scan.isStreaming());
  }

  /** What the file index has told of each file of a scan, which are listed now. */
  static Stream<Map<String, Object>> constantsOfFiles(FileSourceScanExec scan) {
    return Stream.of(scan.selectedPartitions())
        .flatMap(one -> Scala.<FileStatusWithMetadata>stream(one.files()))
        .map(FileStatusWithMetadata::metadata);
  }

  /** The session as the one class that has all of its parts. */
  static SparkSession classic(SparkSession session) {
    return session;
  }
}
