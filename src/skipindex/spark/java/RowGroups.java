package skipindex;

import java.lang.reflect.Field;
import java.util.*;
import java.util.stream.Stream;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.*;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.*;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A scan of files that reads the ranges of bytes with a row that can match.
 *
 * The file index tells them with each file that it lists. Spark's scan makes its tasks of whole
 * files, and before one of them runs they get ranges, as if Spark had split the files there:
 * all that runs in tasks is Spark's own.
 */
public class RowGroups extends Above {
  private static final long serialVersionUID = 1L;
  private static final String ENABLED = "skipindex.rowGroups";
  private static final String RANGES = "ranges of skipindex";

  public RowGroups(SparkPlan scan) {
    super(scan);
  }

  /** Puts itself above scans of which the planner knows rows, unless these tell their place. */
  static Seq<SparkPlan> planned(LogicalPlan plan) {
    LogicalPlan leaf = plan;
    while (leaf instanceof Project || leaf instanceof Filter) leaf = leaf.children().apply(0);
    SkippingFileIndex index = SkipRule.indexOf(leaf);
    boolean isNarrow = index != null && index.scanned.takesRewritten()
        && index.scanned.relation().bucketSpec().isEmpty() && PlannerCalls.isSet(ENABLED);
    if (!isNarrow) return Scala.none();
    try {
      var plans = Scala.<SparkPlan>stream(FileSourceStrategy$.MODULE$.apply(plan));
      return Scala.listed(plans.map(one -> Change.up(one, RowGroups::narrowing)).toList());
    } catch (Throwable problem) {
      index.scanned.planner().report(problem);
      return Scala.none(); // Spark plans it
    }
  }

  private static SparkPlan narrowing(TreeNode<?> node) {
    return node instanceof FileSourceScanExec scan ? new RowGroups(scan) : null;
  }

  /**
   * A file of which only some ranges are read.
   *
   * ranges: the number of its row groups; then begins and ends in turn, ascending, one for each
   *     row group that can match.
   */
  static FileStatusWithMetadata in(FileStatusWithMetadata file, long[] ranges) {
    return new FileStatusWithMetadata(file.fileStatus(), Scala.map(RANGES, ranges));
  }

  /** Gives the tasks of the scan ranges; if that fails, they read whole files. */
  @Override
  protected void begun() {
    if (!(child instanceof FileSourceScanExec files)) return;
    try {
      if (files.inputRDD() instanceof FileScanRDD rdd) narrow(files, rdd);
    } catch (Throwable problem) {
      if (files.relation().location() instanceof SkippingFileIndex index) {
        index.scanned.planner().report(problem);
      }
    }
  }

  private void narrow(FileSourceScanExec files, FileScanRDD rdd)
      throws ReflectiveOperationException {
    SparkSession session = files.relation().sparkSession();
    long open = Compat.classic(session).sessionState().conf().filesOpenCostInBytes();
    var parts = new ArrayList<PartitionedFile>();
    var narrowed = new HashMap<Path, Map<String, Object>>();
    for (FilePartition task : Scala.each(rdd.filePartitions())) {
      for (PartitionedFile file : task.files()) {
        var known = file.otherConstantMetadataColumnValues().get(RANGES);
        if (known.isEmpty()) {
          parts.add(file);
          continue;
        }
        narrowed.put(file.toPath(), file.otherConstantMetadataColumnValues());
        add(file, (long[]) known.get(), open, parts);
      }
    }
    if (narrowed.isEmpty()) return;
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
    show(counts(narrowed.values().stream()));
  }

  /** Adds parts of a part of a file; to read over a gap may cost less than to open it again. */
  private static void add(
      PartitionedFile file, long[] ranges, long open, List<PartitionedFile> parts) {
    long last = file.start() + file.length();
    for (int i = 1; i < ranges.length;) {
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

  @Override
  Above on(SparkPlan scan) {
    return new RowGroups(scan);
  }

  @Override
  List<String> measured() {
    return List.of(
        "row groups that can match", "row groups of files read in part", "files read in part");
  }

  /** Files are not listed for a text alone, but where one is asked for, as by EXPLAIN. */
  @Override
  String told() {
    if (!(child instanceof FileSourceScanExec scan)) return null;
    try {
      String id = execution();
      boolean isExplained = id == null
          || SQLExecution.getQueryExecution(Long.parseLong(id)).logical() instanceof ExplainCommand;
      if (!isExplained) return null;
      // By a copy: the scan keeps what it lists, and files may change before it runs.
      long[] counts = counts(Compat.constantsOfFiles((FileSourceScanExec) scan.clone()));
      if (counts[2] == 0L) return null;
      return counts[0] + " of " + counts[1] + " row groups of " + counts[2] + " files";
    } catch (Exception failing) {
      return null; // as when Spark lists the files of the query
    }
  }

  /** The row groups that can match, all of these files, and the files that are read in part. */
  private static long[] counts(Stream<Map<String, Object>> ofFiles) {
    long[] counts = new long[3];
    ofFiles.map(one -> one.get(RANGES)).filter(Option::isDefined).forEach(one -> {
      long[] known = (long[]) one.get();
      counts[0] += known.length / 2;
      counts[1] += known[0];
      counts[2]++;
    });
    return counts;
  }
}
