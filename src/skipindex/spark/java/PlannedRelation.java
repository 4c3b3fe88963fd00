package skipindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

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
   */
  public HadoopFsRelation of(
      SparkSession session, String root, byte[] names, byte[] marks, String schema, boolean isTree,
      boolean isCaseSensitive) throws java.io.IOException {
    Path folder = new Path(root);
    folder =
        folder.getFileSystem(session.sparkContext().hadoopConfiguration()).makeQualified(folder);
    StructType whole = (StructType) DataType.fromJson(schema);
    scala.collection.immutable.Map<String, String> options = isTree
        ? Scala.map("recursiveFileLookup", "true")
        : Scala.<String, String>map();
    Files files = new Files(folder, names, marks);
    Index index = new Index(session, folder, options, whole, files);
    List<StructField> data = new ArrayList<>(Arrays.asList(whole.fields()));
    List<StructField> partitions = new ArrayList<>();
    StructField[] found = index.partitionSchema().fields();
    for (int i = 0; i < found.length; i++) {
      for (int j = 0; j < data.size(); j++) {
        String name = data.get(j).name();
        boolean isSame = isCaseSensitive ? name.equals(found[i].name())
                                         : name.equalsIgnoreCase(found[i].name());
        if (!isSame) continue;
        partitions.add(data.remove(j));
        break;
      }
    }
    return new HadoopFsRelation(
        index,
        struct(partitions),
        struct(data).asNullable(),
        scala.Option.empty(),
        new ParquetFileFormat(),
        options,
        session);
  }

  private static StructType struct(List<StructField> fields) {
    return new StructType(fields.toArray(new StructField[fields.size()]));
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
      LongBuffer numbers = ByteBuffer.wrap(marks).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
      listed = new FileStatus[numbers.limit() / 2];
      java.net.URI uri = root.toUri();
      String below = uri.getPath().endsWith("/") ? uri.getPath() : uri.getPath() + "/";
      int start = 0;
      for (int i = 0; i < listed.length; i++) {
        int end = start;
        while (names[end] != 0) end++;
        String name = new String(names, start, end - start, StandardCharsets.UTF_8);
        Path path = new Path(uri.getScheme(), uri.getAuthority(), below + name);
        listed[i] = new FileStatus(
            numbers.get(2 * i), false, 1, BLOCK, numbers.get(2 * i + 1), path);
        start = end + 1;
      }
    }

    public scala.Option<FileStatus[]> getLeafFiles(Path path) {
      FileStatus[] files = listed;
      return files != null && path.equals(root) ? scala.Option.apply(files) : scala.Option.empty();
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

    Index(
        SparkSession session, Path root, scala.collection.immutable.Map<String, String> options,
        StructType schema, Files files) {
      super(
          session,
          roots(root),
          options,
          scala.Option.apply(schema),
          files,
          scala.Option.empty(),
          scala.Option.empty());
      this.files = files;
    }

    private static Seq<Path> roots(Path root) {
      return Scala.seq(root);
    }

    /** Spark's own compares the folders alone, but plans of one table differ in files. */
    @Override
    public boolean equals(Object other) {
      return this == other || other instanceof Index && files.isSame(((Index) other).files);
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
