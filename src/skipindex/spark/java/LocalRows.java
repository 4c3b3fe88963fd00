package skipindex;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.*;
import java.util.stream.Stream;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.*;
import scala.collection.immutable.Seq;

/**
 * Rows that the planner has, in a plan: those of files that it read, or results of indexes.
 *
 * For Spark they are a relation of its own. What it is of is told above it, in plans that run.
 */
public final class LocalRows extends Above {
  private static final long serialVersionUID = 1L;
  private static final TreeNodeTag<Source> SOURCE = new TreeNodeTag<>("skipindex");
  /**
   * Where rows come from.
   *
   * how: the planner has them, in words.
   * files: that have them.
   * bytes: that the planner read of these.
   */
  record Source(String how, long files, long rows, long bytes) {}

  /** Its source is a tag of it, which Spark gives to copies. */
  public LocalRows(SparkPlan rows) {
    super(rows);
  }

  private Source source() {
    return getTagValue(SOURCE).get();
  }

  /**
   * A relation of rows, whose constructor has other arguments in other versions of Spark.
   *
   * how, files, bytes: as in Source.
   */
  static LogicalPlan relation(
      List<Attribute> output, List<Object[]> rows, String how, long files, long bytes) {
    var empty = LocalRelation.fromExternalRows(Scala.listed(output), Scala.none());
    var made = Scala.listed(rows.stream().map(GenericInternalRow::new).toList());
    LogicalPlan relation = Change.part(empty, 1, made);
    relation.setTagValue(SOURCE, new Source(how, files, rows.size(), bytes));
    return relation;
  }

  /** What Spark computes of local rows, which then needs no job; null for other nodes. */
  static LogicalPlan computed(TreeNode<?> node) {
    if (!(node instanceof UnaryNode one && one.child() instanceof LocalRelation rows)) return null;
    // Spark computes the limit below it, and then plans an exchange for this one.
    boolean isAll = node instanceof GlobalLimit limit && limit.limitExpr() instanceof Literal most
        && rows.data().size() <= ((Number) most.value()).longValue();
    if (isAll) return rows;
    try {
      LogicalPlan computed = ConvertToLocalRelation$.MODULE$.apply((LogicalPlan) node);
      var source = rows.getTagValue(SOURCE);
      if (source.isDefined() && computed instanceof LocalRelation) {
        computed.setTagValue(SOURCE, source.get());
      }
      return computed;
    } catch (Throwable failing) {
      return null; // it fails when Spark runs it
    }
  }

  /** The plan of a relation, if it is one of the planner's rows. */
  static Seq<SparkPlan> planned(LocalRelation rows) {
    var source = rows.getTagValue(SOURCE);
    if (source.isEmpty()) return Scala.none();
    var plain = Change.part(rows, 1, rows.data());
    plain.unsetTagValue(SOURCE);
    var planner = Compat.classic(SparkSession.active()).sessionState().planner();
    var planned = new LocalRows(planner.plan(plain).next());
    planned.setTagValue(SOURCE, source.get());
    return Scala.seq(planned);
  }

  /** The rows of a stream of Arrow, whose columns have these types. */
  static List<Object[]> values(byte[] bytes, int start, List<DataType> types) throws IOException {
    var rows = new ArrayList<Object[]>();
    var in = new ByteArrayInputStream(bytes, start, bytes.length - start);
    try (var memory = ArrowUtils$.MODULE$.rootAllocator().newChildAllocator(
             "skipindex", 0L, Long.MAX_VALUE);
         var reader = new ArrowStreamReader(in, memory)) {
      var root = reader.getVectorSchemaRoot();
      var columns =
          root.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[] ::new);
      var found = Stream.of(columns).map(ColumnVector::dataType).toList();
      if (!found.equals(types))
        throw new IOException("the planner has rows of " + found + ", and not of " + types);
      while (reader.loadNextBatch()) {
        var batch = new ColumnarBatch(columns, root.getRowCount());
        for (int i = 0; i < batch.numRows(); i++) {
          InternalRow row = batch.getRow(i);
          var values = new Object[columns.length];
          for (int j = 0; j < columns.length; j++) {
            if (!row.isNullAt(j)) values[j] = InternalRow.copyValue(row.get(j, types.get(j)));
          }
          rows.add(values);
        }
      }
    }
    return rows;
  }

  @Override
  Above on(SparkPlan rows) {
    return new LocalRows(rows);
  }

  @Override
  public String nodeName() {
    return "PlannedRows";
  }

  @Override
  String told() {
    return source().rows + " rows of " + source().files + " files, " + source().how;
  }

  @Override
  List<String> measured() {
    return List.of(
        "files with rows of the planner", "rows of the planner", "bytes read by the planner");
  }

  @Override
  protected void begun() {
    show(source().files, source().rows, source().bytes);
  }

  /** Spark's own needs no job for these. */
  @Override
  public InternalRow[] executeCollect() {
    begun();
    return child.executeCollect();
  }

  @Override
  public scala.collection.Iterator<InternalRow> executeToIterator() {
    begun();
    return child.executeToIterator();
  }

  @Override
  public InternalRow[] executeTake(int n) {
    begun();
    return child.executeTake(n);
  }

  @Override
  public InternalRow[] executeTail(int n) {
    begun();
    return child.executeTail(n);
  }
}
