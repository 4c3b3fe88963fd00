package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.*;
import java.util.stream.Stream;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import scala.collection.immutable.Seq;

/**
 * Rows of scans that the planner reads, where few can match.
 *
 * They take the place of the scan. The condition above it stays, so rows that do not match do
 * no harm. Values of partitions are those that Spark has for the files.
 */
final class PlannedRows {
  private static final String BYTES = "skipindex.rowsFromPlanner";
  private static final String DEFAULT_BYTES = "4m";
  private static final int MOST_ROWS = 10_000;

  /** By the condition above a scan, the columns that the query needs. */
  private final Map<Filter, AttributeSet> needed = new IdentityHashMap<>();

  /** Conditions that come next, below what says which columns it needs. */
  private final Set<Filter> narrowed = Collections.newSetFromMap(new IdentityHashMap<>());

  private final Map<Filter, Asked> asked = new IdentityHashMap<>();
  private final Set<FileIndex> shared;

  private PlannedRows(Set<FileIndex> shared) {
    this.shared = shared;
  }

  /**
   * The plan with rows in the place of scans, in subqueries too.
   *
   * shared: file indexes of scans that Spark reads for more than one purpose.
   */
  static LogicalPlan in(LogicalPlan plan, Set<FileIndex> shared) {
    long bytes = JavaUtils.byteStringAsBytes(SQLConf.get().getConfString(BYTES, DEFAULT_BYTES));
    return bytes > 0L && isOfRows(plan) ? new PlannedRows(shared).in(plan, bytes) : plan;
  }

  /** Whether all that counts are the rows of scans, and not which file or task they are of. */
  private static boolean isOfRows(LogicalPlan plan) {
    return plan.deterministic() && !plan.isStreaming() && !Origins.areToldBy(plan)
        && !plan.exists(
            node
            -> node instanceof Sample
                || node instanceof org.apache.spark.sql.catalyst.plans.logical.Command);
  }

  private LogicalPlan in(LogicalPlan plan, long bytes) {
    Change.downWithSubqueries(plan, this::noted);
    // All are asked before the first answer is awaited.
    needed.forEach((filter, columns) -> {
      Asked one = Asked.of(filter, columns, bytes);
      if (one != null) asked.put(filter, one);
    });
    if (asked.isEmpty()) return plan;
    LogicalPlan changed = Change.downWithSubqueries(
        plan, node -> asked.containsKey(node) ? asked.get(node).answered() : null);
    return changed == plan ? plan : Change.upWithSubqueries(changed, LocalRows::computed);
  }

  /** Notes which columns are needed of the scans below a node; changes nothing. */
  private LogicalPlan noted(TreeNode<?> node) {
    if (node instanceof Filter filter && isFew(filter) && !narrowed.remove(filter)) {
      note(filter, filter.outputSet());
    }
    boolean isNarrow = node instanceof Project || node instanceof Aggregate;
    if (isNarrow && ((LogicalPlan) node).children().apply(0) instanceof Filter filter
        && isFew(filter)) {
      note(filter, ((LogicalPlan) node).references());
      narrowed.add(filter);
    }
    return null;
  }

  private void note(Filter filter, AttributeSet columns) {
    needed.merge(filter, columns.$plus$plus(filter.references()), AttributeSet::$plus$plus);
  }

  /** Whether a condition is above a scan that may give its place to rows. */
  private boolean isFew(Filter filter) {
    SkippingFileIndex index = SkipRule.indexOf(filter.child());
    return index != null && index.canBeAnswered() && !index.scanned.isLenient()
        && index.scanned.relation().bucketSpec().isEmpty() // a join needs no exchange then
        && !shared.contains(index.scanned.base())
        && !SubqueryExpression.hasSubquery(filter.condition());
  }

  /**
   * A question for the rows of a scan.
   *
   * name: says all that the answer depends on.
   * output: the columns that are needed.
   * places: of each, its place among those of partitions; -1 if files have it.
   */
  private record Asked(
      Filter filter, SkippingFileIndex index, String name, List<Attribute> output,
      List<Integer> places) {
    /** The question for what is needed; null if it is not, or was not, answered. */
    static Asked of(Filter filter, AttributeSet needed, long bytes) {
      Below below = Below.of(filter);
      SkippingFileIndex index = below.index();
      Scanned scanned = index.scanned;
      if (below.conjuncts().isEmpty()) return null;
      var output = Scala.<Attribute>stream(below.scan().output()).filter(needed::contains).toList();
      var places = output.stream().map(one -> place(one, scanned)).toList();
      if (places.contains(null)) return null;
      var rows = Json.object();
      ArrayNode columns = rows.put("bytes", bytes).put("rows", MOST_ROWS).putArray("columns");
      for (int i = 0; i < places.size(); i++) {
        if (places.get(i) < 0) columns.add(output.get(i).name());
      }
      String question = scanned.question(Json.array(), below.conjuncts());
      String name = Json.text(rows) + "\n" + question;
      PlannerCalls planner = scanned.planner();
      if (index.query.get(name) == null) {
        if (planner.isResting(scanned.root(), index.query, false)) return null;
        var ahead = planner.askAhead("rows", name, index.query, scanned.root());
        index.query.put(name, ahead);
        index.query.put("ahead\n" + question, ahead);
      }
      return new Asked(filter, index, name, output, places);
    }

    /** The place of a column among those of partitions; null if it is read in its own way. */
    private static Integer place(Attribute column, Scanned scanned) {
      StructField[] partitions = scanned.base().partitionSchema().fields();
      if (!scanned.relation().partitionSchema().equals(scanned.base().partitionSchema()))
        return null;
      for (int i = 0; i < partitions.length; i++) {
        if (!partitions[i].name().equalsIgnoreCase(column.name())) continue;
        return isSame(partitions[i], column) ? i : null;
      }
      boolean isOfFiles = Stream.of(scanned.relation().dataSchema().fields())
                              .anyMatch(field -> isSame(field, column));
      return isOfFiles ? -1 : null;
    }

    private static boolean isSame(StructField field, Attribute column) {
      return field.name().equals(column.name()) && field.dataType().equals(column.dataType());
    }

    /** The condition above the rows; null if Spark reads the files. */
    LogicalPlan answered() {
      if (!(index.query.get(name) instanceof PlannerCalls.Ahead ahead)) return null;
      try {
        LogicalPlan rows = rows(ahead);
        if (rows != null) return Change.above(filter, rows);
      } catch (Throwable problem) {
        index.scanned.planner().report(problem);
      }
      index.query.put(name, "none");
      return null;
    }

    /** The rows of the files that Spark lists; null if some are not known. */
    private LogicalPlan rows(PlannerCalls.Ahead ahead) throws IOException {
      Scanned scanned = index.scanned;
      var answer = ahead.answer();
      if (answer.isNone()) return null;
      var rest = Listing.rest(answer, scanned.all(), scanned);
      if (rest == null || rest.unknown() > 0) return null;
      ByteBuffer buffer = ByteBuffer.wrap(answer.bits).order(ByteOrder.LITTLE_ENDIAN);
      buffer.position(answer.start());
      // By file: its first row, and the one after its last.
      var spans = new HashMap<Integer, int[]>();
      int end = 0;
      long bytes = buffer.getLong();
      for (int left = buffer.getInt(); left > 0; left--) {
        int file = buffer.getInt();
        spans.put(file, new int[] {end, end += buffer.getInt()});
      }
      var types = new ArrayList<DataType>();
      for (int i = 0; i < places.size(); i++) {
        if (places.get(i) < 0) types.add(output.get(i).dataType());
      }
      // Without a column, the stream has no rows either.
      List<Object[]> values = types.isEmpty()
          ? Collections.nCopies(end, new Object[0])
          : LocalRows.values(answer.bits, buffer.position(), types);
      if (values.size() != end) throw new IOException("the planner has " + end + " other rows");
      int files = 0;
      var rows = new ArrayList<Object[]>();
      for (PartitionDirectory directory : Scala.each(rest.directories())) {
        for (FileStatusWithMetadata file : Scala.each(directory.files())) {
          int[] span = spans.get(answer.listing.find(file.fileStatus(), answer.root));
          if (span == null) return null;
          if (span[0] < span[1]) files++;
          for (int i = span[0]; i < span[1]; i++) rows.add(row(values.get(i), directory.values()));
        }
      }
      scanned.planner().tell(0, rest);
      return LocalRows.relation(output, rows, "read by skipindex", files, bytes);
    }

    private Object[] row(Object[] ofFile, InternalRow ofFolder) {
      var values = new Object[output.size()];
      int next = 0;
      for (int i = 0; i < values.length; i++) {
        int place = places.get(i);
        values[i] = place < 0 ? ofFile[next++] : ofFolder.get(place, output.get(i).dataType());
      }
      return values;
    }
  }
}
