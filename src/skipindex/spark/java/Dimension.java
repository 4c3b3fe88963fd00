package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The side of a join that a column of a scan needs a key of: Parquet files under conditions.
 *
 * The planner reads the key and the columns of the conditions. It may read more keys than the
 * side has, and never fewer: what is not understood of the side leaves out no row of it.
 */
class Dimension {
  private static final int MAX_FILES = 1000;
  private static final int MAX_ROWS = 10000;

  /** The column of the scan. */
  private final String column;

  /** All but the files, or the keys themselves where the plan has them. */
  private final ObjectNode told;

  private final ArrayNode keys;

  /** What the files of the side are listed by; null if it has none. */
  private final FileIndex location;

  /** That by which the query tells listings apart. */
  private final int listing;

  /** What its own columns need to have. */
  private final List<Dimension> others;

  private Dimension(
      String column, ObjectNode told, ArrayNode keys, FileIndex location, int listing,
      List<Dimension> others) {
    this.column = column;
    this.told = told;
    this.keys = keys;
    this.location = location;
    this.listing = listing;
    this.others = others;
  }

  /**
   * What columns of a scan need to have, as far as it can be told to the planner.
   *
   * asking: the index of the scan that gets keys, itself or through this one.
   */
  static List<Dimension> of(
      LogicalRelation scan, List<Joins.Needed> needed, Set<FileIndex> unsure,
      SkippingFileIndex asking) {
    List<Dimension> found = new ArrayList<>();
    for (Joins.Needed one : needed) {
      String column = Joins.nameIn(scan, one.column);
      if (column == null) continue;
      try {
        Dimension side = of(column, one, unsure, asking);
        if (side != null && !found.contains(side)) found.add(side);
      } catch (Throwable problem) {
        asking.scanned.planner.report(problem);
      }
    }
    return found;
  }

  /** Null if the side is anything else, or nothing is asked of it. */
  private static Dimension of(
      String column, Joins.Needed needed, Set<FileIndex> unsure, SkippingFileIndex asking) {
    Attribute key = needed.key;
    List<Joins.Needed> others = needed.ofSide;
    List<Expression> conjuncts = new ArrayList<>();
    LogicalPlan node = needed.side;
    while (!(node instanceof LogicalRelation || node instanceof LocalRelation)) {
      if (!node.deterministic()) return null;
      if (node instanceof Join) {
        Join join = (Join) node;
        boolean isLeft = join.left().outputSet().contains(key);
        if (!isLeft && !join.right().outputSet().contains(key)) return null;
        others = Joins.below(join, isLeft, others);
        node = isLeft ? join.left() : join.right();
        continue;
      }
      if (node instanceof Filter)
        SkipRule.split(((Filter) node).condition(), conjuncts);
      else if (node instanceof Project) {
        Expression source = TopRows.source(key, (Project) node);
        if (!(source instanceof Attribute)) return null;
        key = (Attribute) source;
        conjuncts = below((Project) node, conjuncts);
        others = Joins.below(node, others);
      } else if (!(node instanceof SubqueryAlias || isGrouping(node)))
        return null;
      node = node.children().apply(0);
    }
    if (node instanceof LocalRelation) return local(column, key, (LocalRelation) node);
    LogicalRelation scan = (LogicalRelation) node;
    if (!Joins.isOfFiles(scan) || unsure.contains(SkipRule.baseOf(scan))) return null;
    if (SkipRule.locationOf(scan).sizeInBytes() >= asking.sizeInBytes()) return null;
    List<Dimension> ofScan = of(scan, others, unsure, asking);
    return ofFiles(column, key, scan, asked(conjuncts, key, scan), ofScan, asking);
  }

  /** Distinct rows: their keys are keys of the rows below. */
  private static boolean isGrouping(LogicalPlan node) {
    if (!(node instanceof Aggregate)) return false;
    for (NamedExpression one : Scala.each(((Aggregate) node).aggregateExpressions())) {
      if (!(one instanceof AttributeReference)) return false;
    }
    return true;
  }

  /** The conjuncts on columns that a projection leaves as they are. */
  private static List<Expression> below(Project project, List<Expression> conjuncts) {
    List<Expression> found = new ArrayList<>();
    for (Expression one : conjuncts) {
      boolean isSame = true;
      for (Attribute column : Scala.each(one.references())) {
        Expression source = TopRows.source(column, project);
        isSame &= source instanceof Attribute
            && ((Attribute) source).exprId().equals(column.exprId());
      }
      if (isSame) found.add(one);
    }
    return found;
  }

  /** The conjuncts on columns of the scan, but that the key is there: a match has one. */
  private static List<Expression> asked(
      List<Expression> conjuncts, Attribute key, LogicalRelation scan) {
    List<Expression> found = new ArrayList<>();
    for (Expression one : conjuncts) {
      boolean isOfKey = one instanceof IsNotNull && ((IsNotNull) one).child().semanticEquals(key);
      boolean isOfScan = one.references().subsetOf(scan.outputSet());
      if (!isOfKey && isOfScan && !SubqueryExpression.hasSubquery(one)) found.add(one);
    }
    return found;
  }

  private static Dimension ofFiles(
      String column, Attribute key, LogicalRelation scan, List<Expression> conjuncts,
      List<Dimension> others, SkippingFileIndex asking) {
    HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
    if (!relation.fileFormat().getClass().getName().equals(SkipRule.PARQUET)) return null;
    FileIndex location = SkipRule.baseOf(scan);
    boolean isListed = location.getClass().getSimpleName().equals("InMemoryFileIndex");
    String name = Joins.nameIn(scan, key);
    boolean isAsked = !others.isEmpty();
    for (Expression one : conjuncts) isAsked |= !(one instanceof IsNotNull);
    if (!isListed || name == null || !isAsked) return null;
    ObjectNode told = Json.object();
    told.put("key", name).put("is_catalog_table", scan.catalogTable().isDefined());
    told.setAll(Question.schemas(relation.dataSchema(), relation.partitionSchema()));
    SQLConf reader = relation.sparkSession().sessionState().conf();
    Question.addReader(told, asking.scanned.planner.settings, reader);
    Question.addOptions(told, relation.options());
    told.put("conjuncts", ExpressionJson.json(TopRows.normalized(conjuncts, scan)));
    return new Dimension(column, told, null, location, asking.query.listing(location), others);
  }

  /** The keys of rows that the plan has; null if they are too many, or of other types. */
  private static Dimension local(String column, Attribute key, LocalRelation rows) {
    int at = -1;
    for (Attribute one : Scala.each(rows.output())) {
      at++;
      if (one.exprId().equals(key.exprId())) break;
    }
    DataType type = key.dataType();
    if (type instanceof DecimalType || rows.data().size() > MAX_ROWS) return null;
    ArrayNode keys = Json.array();
    for (InternalRow row : Scala.each(rows.data())) {
      if (row.isNullAt(at)) continue;
      Object value = row.get(at, type);
      if (!(type instanceof StringType)) {
        keys.add(((Number) value).longValue());
        continue;
      }
      // Bytes that are no UTF-8 have no text of their own.
      if (!UTF8String.fromString(value.toString()).equals(value)) return null;
      keys.add(value.toString());
    }
    return new Dimension(column, null, keys, null, 0, new ArrayList<Dimension>());
  }

  /** Adds a pair of the column, and a list of keys or what it is joined with as it is now. */
  void addTo(ArrayNode all) {
    if (keys != null) {
      all.addArray().add(column).add(keys);
      return;
    }
    List<FileStatus> files = new ArrayList<>();
    scala.collection.Seq<PartitionDirectory> listed = location.listFiles(
        Scala.<Expression>none(), Scala.<Expression>none());
    for (PartitionDirectory directory : Scala.each(listed)) {
      for (FileStatusWithMetadata each : Scala.each(directory.files())) {
        files.add(each.fileStatus());
        if (files.size() > MAX_FILES) return;
      }
    }
    Path root = root(location.rootPaths().iterator(), files);
    if (root == null) return;
    ObjectNode side = Question.place(root);
    side.setAll(told);
    ArrayNode paths = side.putArray("paths");
    ArrayNode sizes = side.putArray("sizes");
    ArrayNode times = side.putArray("millis");
    for (FileStatus file : files) {
      paths.add(Listing.below(file.getPath(), root));
      sizes.add(file.getLen());
      times.add(file.getModificationTime());
    }
    ArrayNode needed = side.putArray("keys");
    for (Dimension one : others) one.addTo(needed);
    all.addArray().add(column).add(side);
  }

  /** The first path of a scan, or the folder above it that all files are in. */
  private static Path root(scala.collection.Iterator<Path> paths, List<FileStatus> files) {
    Path root = paths.hasNext() ? paths.next() : null;
    Iterator<FileStatus> rest = files.iterator();
    FileStatus file = rest.hasNext() ? rest.next() : null;
    while (root != null && file != null) {
      if (Listing.below(file.getPath(), root) == null)
        root = root.getParent();
      else
        file = rest.hasNext() ? rest.next() : null;
    }
    return root;
  }

  /** Spark finds scans that it can run once by this. */
  @Override
  public boolean equals(Object other) {
    if (!(other instanceof Dimension)) return false;
    Dimension side = (Dimension) other;
    if (!column.equals(side.column) || (keys == null) != (side.keys == null)) return false;
    if (keys != null) return keys.equals(side.keys);
    return told.equals(side.told) && listing == side.listing && others.equals(side.others)
        && location.equals(side.location);
  }

  @Override
  public int hashCode() {
    return column.hashCode();
  }
}
