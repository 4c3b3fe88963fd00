package skipindex;

import java.lang.reflect.Field;
import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.*;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A scan of files that reads the ranges of bytes with a row that can match.
 *
 * The file index tells them with each file that it lists. Spark's scan makes its tasks of whole
 * files, and before one of them runs they get ranges, as if Spark had split the files there:
 * all that runs in tasks is Spark's own.
 */
public class RowGroups extends SparkPlan {
  private static final long serialVersionUID = 1L;
  private static final String ENABLED = "skipindex.rowGroups";
  private static final String RANGES = "ranges of skipindex";
  static final SparkStrategy STRATEGY = new Strategy();
  private final SparkPlan scan;

  public RowGroups(SparkPlan scan) {
    this.scan = scan;
  }

  /** Puts itself above scans of which the planner knows rows, unless these tell their place. */
  private static class Strategy extends SparkStrategy {
    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      LogicalPlan leaf = plan;
      while (leaf instanceof Project || leaf instanceof Filter) leaf = leaf.children().apply(0);
      SkippingFileIndex index = SkipRule.indexOf(leaf);
      boolean isNarrow = index != null && index.scanned.takesRewritten()
          && index.scanned.relation().bucketSpec().isEmpty() && PlannerCalls.isSet(ENABLED);
      if (!isNarrow) return Scala.none();
      try {
        var plans = Scala.<SparkPlan>stream(FileSourceStrategy$.MODULE$.apply(plan));
        return Scala.listed(plans.map(one -> Change.up(one, Strategy::narrowing)).toList());
      } catch (Throwable problem) {
        index.scanned.planner().report(problem);
        return Scala.none(); // Spark plans it
      }
    }

    private static SparkPlan narrowing(TreeNode<?> node) {
      return node instanceof FileSourceScanExec scan ? new RowGroups(scan) : null;
    }
  }

  /** A file of which only these ranges are read: begins and ends in turn, ascending. */
  static FileStatusWithMetadata in(FileStatusWithMetadata file, long[] ranges) {
    return new FileStatusWithMetadata(file.fileStatus(), Scala.map(RANGES, ranges));
  }

  @Override
  public RDD<InternalRow> doExecute() {
    var rows = scan.execute(); // which awaits what filters of partitions are made of
    narrowed();
    return rows;
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    var rows = scan.executeColumnar();
    narrowed();
    return rows;
  }

  /** Gives the tasks of the scan ranges; if that fails, they read whole files. */
  private void narrowed() {
    if (!(scan instanceof FileSourceScanExec files)) return;
    try {
      if (files.inputRDD() instanceof FileScanRDD rdd) narrow(files, rdd);
    } catch (Throwable problem) {
      if (files.relation().location() instanceof SkippingFileIndex index) {
        index.scanned.planner().report(problem);
      }
    }
  }

  private static void narrow(FileSourceScanExec files, FileScanRDD rdd)
      throws ReflectiveOperationException {
    SparkSession session = files.relation().sparkSession();
    long open = Compat.classic(session).sessionState().conf().filesOpenCostInBytes();
    var parts = new ArrayList<PartitionedFile>();
    boolean isChanged = false;
    for (FilePartition task : Scala.each(rdd.filePartitions())) {
      for (PartitionedFile file : task.files()) {
        var known = file.otherConstantMetadataColumnValues().get(RANGES);
        isChanged |= known.isDefined();
        if (known.isDefined())
          add(file, (long[]) known.get(), open, parts);
        else
          parts.add(file);
      }
    }
    if (!isChanged) return;
    parts.sort(Comparator.comparingLong(PartitionedFile::length).reversed()); // as Spark does
    var sizes = parts.stream().map(one -> {
      return new FileStatusWithMetadata(
          new FileStatus(one.length(), false, 1, 1L, 0L, one.toPath()), Scala.map());
    });
    var all = Scala.seq(new PartitionDirectory(InternalRow.empty(), Scala.listed(sizes.toList())));
    long most = FilePartition$.MODULE$.maxSplitBytes(session, all);
    Field field = FileScanRDD.class.getDeclaredField("filePartitions");
    field.setAccessible(true);
    field.set(rdd, FilePartition$.MODULE$.getFilePartitions(session, Scala.listed(parts), most));
  }

  /** Adds parts of a part of a file; to read over a gap may cost less than to open it again. */
  private static void add(
      PartitionedFile file, long[] ranges, long open, List<PartitionedFile> parts) {
    long last = file.start() + file.length();
    for (int i = 0; i < ranges.length;) {
      long begin = Math.max(ranges[i], file.start());
      long end = ranges[i + 1];
      for (i += 2; i < ranges.length && ranges[i] - end <= open; i += 2) end = ranges[i + 1];
      end = Math.min(end, last);
      if (begin < end) {
        parts.add(new PartitionedFile(
            file.partitionValues(),
            file.filePath(),
            begin,
            end - begin,
            file.locations(),
            file.modificationTime(),
            file.fileSize(),
            Scala.map()));
      }
    }
  }

  /** No class of this jar goes to executors. */
  protected Object writeReplace() {
    return scan;
  }

  @Override
  public SparkPlan doCanonicalize() {
    return scan.canonicalized();
  }

  @Override
  public String nodeName() {
    return "RowGroups that can match";
  }

  @Override
  public Seq<Attribute> output() {
    return Scala.kept(scan.output());
  }

  @Override
  public boolean supportsColumnar() {
    return scan.supportsColumnar();
  }

  @Override
  public Partitioning outputPartitioning() {
    return scan.outputPartitioning();
  }

  @Override
  public Seq<SparkPlan> children() {
    return Scala.seq(scan);
  }

  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new RowGroups(children.apply(0));
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq<SparkPlan> children) {
    return new RowGroups(children.apply(0));
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int place) {
    return scan;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof RowGroups;
  }
}
