package skipindex;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** A file index around another one, with the lists of Scala 2.13. */
abstract class Wrapping implements FileIndex {
  final FileIndex base;

  Wrapping(FileIndex base) {
    this.base = base;
  }

  abstract scala.collection.immutable.Seq<PartitionDirectory> list(
      scala.collection.immutable.Seq<Expression> partitionFilters,
      scala.collection.immutable.Seq<Expression> dataFilters);

  @Override
  public Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    return list(partitionFilters, dataFilters);
  }

  @Override
  public Seq<Path> rootPaths() {
    return base.rootPaths();
  }

  @Override
  public String[] inputFiles() {
    return base.inputFiles();
  }

  @Override
  public void refresh() {
    base.refresh();
  }

  @Override
  public long sizeInBytes() {
    return base.sizeInBytes();
  }

  @Override
  public StructType partitionSchema() {
    return base.partitionSchema();
  }

  @Override
  public Option<Object> metadataOpsTimeNs() {
    return base.metadataOpsTimeNs();
  }
}
