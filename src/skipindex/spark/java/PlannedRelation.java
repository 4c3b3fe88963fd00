package skipindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.function.Predicate;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.*;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * A relation of Parquet files that the caller lists, so that Spark lists none.
 *
 * Values and types of partition columns are Spark's own, from the folders' names.
 */
public class PlannedRelation {
  static final long BLOCK = 128L << 20;

  /**
   * root: the folder, as text of a Path.
   * names: the files below it as UTF-8, each followed by a zero byte.
   * marks: for each file its size in bytes and its time in milliseconds, little endian.
   * schema: of the table as JSON, with the partition columns.
   * isTree: whether files may lie in folders that are no partitions.
   * isCaseSensitive: whether capitals tell columns apart.
   * isPruned: whether the rule of a session may leave out more, by the query around it.
   */
  public HadoopFsRelation of(
      SparkSession session, String root, byte[] names, byte[] marks, String schema, boolean isTree,
      boolean isCaseSensitive, boolean isPruned) throws java.io.IOException {
    Path folder = new Path(root);
    folder =
        folder.getFileSystem(session.sparkContext().hadoopConfiguration()).makeQualified(folder);
    StructType whole = (StructType) DataType.fromJson(schema);
    Map<String, String> options = isTree ? Scala.map("recursiveFileLookup", "true") : Scala.map();
    var index = new Index(
        session, folder, options, whole, new Files(folder, names, marks), isPruned);
    var data = new ArrayList<>(List.of(whole.fields()));
    var partitions = new ArrayList<StructField>();
    for (StructField found : index.partitionSchema().fields()) {
      Predicate<String> isSame = isCaseSensitive ? found.name()::equals
                                                 : found.name()::equalsIgnoreCase;
      data.stream().filter(one -> isSame.test(one.name())).findFirst().ifPresent(partitions::add);
    }
    data.removeAll(partitions);
    return new HadoopFsRelation(
        index,
        struct(partitions),
        struct(data).asNullable(),
        Option.empty(),
        new ParquetFileFormat(),
        options,
        session);
  }

  private static StructType struct(List<StructField> fields) {
    return new StructType(fields.toArray(StructField[] ::new));
  }

  /** What Spark asks instead of the file system, until it is told to look again. */
  static class Files extends FileStatusCache {
    final Path root;
    final byte[] names;
    final byte[] marks;
    private volatile FileStatus[] listed;

    Files(Path root, byte[] names, byte[] marks) {
      this.root = root;
      this.names = names;
      this.marks = marks;
      var numbers = ByteBuffer.wrap(marks).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
      listed = new FileStatus[numbers.limit() / 2];
      var uri = root.toUri();
      int start = 0;
      for (int i = 0; i < listed.length; i++) {
        int end = start;
        while (names[end] != 0) end++;
        String name = new String(names, start, end - start, StandardCharsets.UTF_8);
        var path = new Path(uri.getScheme(), uri.getAuthority(), Roots.prefix(root) + name);
        listed[i] = new FileStatus(
            numbers.get(2 * i), false, 1, BLOCK, numbers.get(2 * i + 1), path);
        start = end + 1;
      }
    }

    public Option<FileStatus[]> getLeafFiles(Path path) {
      return path.equals(root) ? Option.apply(listed) : Option.empty();
    }

    public void putLeafFiles(Path path, FileStatus[] files) {
      // What Spark lists itself is asked for anew each time.
    }

    public void invalidateAll() {
      listed = null;
    }

    boolean isSame(Files other) {
      return listed != null && other.listed != null && root.equals(other.root)
          && Arrays.equals(names, other.names) && Arrays.equals(marks, other.marks);
    }
  }

  static class Index extends InMemoryFileIndex {
    private final Files files;
    final boolean isPruned;

    Index(
        SparkSession session, Path root, Map<String, String> options, StructType schema,
        Files files, boolean isPruned) {
      super(
          session,
          Scala.seq(root),
          options,
          Option.apply(schema),
          files,
          Option.empty(),
          Option.empty());
      this.files = files;
      this.isPruned = isPruned;
    }

    /** Spark's own compares the folders alone, but plans of one table differ in files. */
    @Override
    public boolean equals(Object other) {
      return this == other || other instanceof Index index && files.isSame(index.files);
    }

    @Override
    public int hashCode() {
      return files.root.hashCode();
    }

    @Override
    public String toString() {
      return "PlannedRelation(" + files.root + ")";
    }
  }
}
