package skipindex;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** A file index around another one. */
abstract class Wrapping implements FileIndex {
  final FileIndex base;

  Wrapping(FileIndex base) {
    this.base = base;
  }

  /** What Spark calls with Scala 2.13. */
  public abstract Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters);

  /** What Spark calls with Scala 2.12. */
  public Seq<PartitionDirectory> listFiles(
      scala.collection.Seq<Expression> partitionFilters,
      scala.collection.Seq<Expression> dataFilters) {
    return listFiles(Scala.<Expression>kept(partitionFilters), Scala.kept(dataFilters));
  }

  @Override
  public Seq<Path> rootPaths() {
    return Scala.kept(base.rootPaths());
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
