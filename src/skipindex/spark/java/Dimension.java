package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;
import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The side of a join that a column of a scan needs a key of: Parquet files under conditions.
 *
 * The planner reads the key and the columns of the conditions. It may read more keys than the
 * side has, and never fewer: what is not understood of the side leaves out no row of it.
 * Spark finds scans that it can run once by the equality of these.
 *
 * column: of the scan.
 * told: all but the files, or a list of the keys where the plan has them itself.
 * location: what the files of the side are listed by, or null.
 * listing: that by which the query tells listings apart.
 * others: what its own columns need to have.
 */
record Dimension(
    String column, JsonNode told, FileIndex location, int listing, List<Dimension> others) {
  private static final int MAX_FILES = 1000;
  private static final int MAX_ROWS = 10000;

  /**
   * What columns of a scan need to have, as far as it can be told to the planner.
   *
   * asking: the index of the scan that gets keys, itself or through this one.
   */
  static List<Dimension> of(
      LogicalRelation scan, List<Joins.Needed> needed, Set<FileIndex> unsure,
      SkippingFileIndex asking) {
    var found = new ArrayList<Dimension>();
    for (Joins.Needed one : needed) {
      String column = Joins.nameIn(scan, one.column());
      if (column == null) continue;
      try {
        Dimension side = of(column, one, unsure, asking);
        if (side != null && !found.contains(side)) found.add(side);
      } catch (Throwable problem) {
        asking.scanned.planner().report(problem);
      }
    }
    return found;
  }

  /** Null if the side is anything else, or nothing is asked of it. */
  private static Dimension of(
      String column, Joins.Needed needed, Set<FileIndex> unsure, SkippingFileIndex asking) {
    Attribute key = needed.key();
    List<Joins.Needed> others = needed.ofSide();
    List<Expression> conjuncts = new ArrayList<>();
    LogicalPlan node = needed.side();
    while (!(node instanceof LogicalRelation || node instanceof LocalRelation)) {
      if (!node.deterministic()) return null;
      if (node instanceof Join join) {
        boolean isLeft = join.left().outputSet().contains(key);
        if (!isLeft && !join.right().outputSet().contains(key)) return null;
        others = Joins.below(join, isLeft, others);
        node = isLeft ? join.left() : join.right();
        continue;
      }
      if (node instanceof Filter filter)
        conjuncts.addAll(SkipRule.split(filter.condition()));
      else if (node instanceof Project project) {
        if (!(Below.source(key, project) instanceof Attribute source)) return null;
        key = source;
        conjuncts = below(project, conjuncts);
        others = Joins.below(node, others);
      } else if (!(node instanceof SubqueryAlias || isGrouping(node)))
        return null;
      node = node.children().apply(0);
    }
    if (node instanceof LocalRelation rows) return local(column, key, rows);
    LogicalRelation scan = (LogicalRelation) node;
    if (!Joins.isOfFiles(scan) || unsure.contains(SkipRule.baseOf(scan))) return null;
    if (SkipRule.locationOf(scan).sizeInBytes() >= asking.sizeInBytes()) return null;
    List<Dimension> ofScan = of(scan, others, unsure, asking);
    return ofFiles(column, key, scan, asked(conjuncts, key, scan), ofScan, asking);
  }

  /** Distinct rows: their keys are keys of the rows below. */
  private static boolean isGrouping(LogicalPlan node) {
    return node instanceof Aggregate aggregate
        && Scala.stream(aggregate.aggregateExpressions())
               .allMatch(one -> one instanceof AttributeReference);
  }

  /** The conjuncts on columns that a projection leaves as they are. */
  private static List<Expression> below(Project project, List<Expression> conjuncts) {
    var found = new ArrayList<Expression>();
    for (Expression one : conjuncts) {
      boolean isSame = true;
      for (Attribute column : Scala.each(one.references())) {
        isSame &= Below.source(column, project) instanceof Attribute source
            && source.exprId().equals(column.exprId());
      }
      if (isSame) found.add(one);
    }
    return found;
  }

  /** The conjuncts on columns of the scan, but that the key is there: a match has one. */
  private static List<Expression> asked(
      List<Expression> conjuncts, Attribute key, LogicalRelation scan) {
    var found = new ArrayList<Expression>();
    for (Expression one : conjuncts) {
      boolean isOfKey = one instanceof IsNotNull there && there.child().semanticEquals(key);
      boolean isOfScan = one.references().subsetOf(scan.outputSet());
      if (!isOfKey && isOfScan && !SubqueryExpression.hasSubquery(one)) found.add(one);
    }
    return found;
  }

  private static Dimension ofFiles(
      String column, Attribute key, LogicalRelation scan, List<Expression> conjuncts,
      List<Dimension> others, SkippingFileIndex asking) {
    HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
    FileIndex location = SkipRule.baseOf(scan);
    String name = Joins.nameIn(scan, key);
    boolean isAsked = !others.isEmpty()
        || !conjuncts.stream().allMatch(one -> one instanceof IsNotNull);
    boolean isKnown = SkipRule.isParquet(relation) && SkipRule.isListing(location);
    if (!isKnown || name == null || !isAsked) return null;
    String[] settings = asking.scanned.planner().settings;
    boolean isOfCatalog = scan.catalogTable().isDefined();
    ObjectNode told = Question.scan(relation.dataSchema(), relation.partitionSchema(), isOfCatalog)
                          .put("key", name)
                          .put("conjuncts", ExpressionJson.json(Below.normalized(conjuncts, scan)));
    Question.addReading(told, relation, settings);
    return new Dimension(column, told, location, asking.query.listing(location), others);
  }

  /** The keys of rows that the plan has; null if they are too many, or of other types. */
  private static Dimension local(String column, Attribute key, LocalRelation rows) {
    int at = rows.output().indexWhere(one -> one.exprId().equals(key.exprId()));
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
    return new Dimension(column, keys, null, 0, List.of());
  }

  /** Adds a pair of the column, and a list of keys or what it is joined with as it is now. */
  void addTo(ArrayNode all) {
    if (!(told instanceof ObjectNode ofFiles)) {
      all.addArray().add(column).add(told);
      return;
    }
    List<FileStatus> files =
        Listing.files(Scanned.listed(location, Scala.none())).limit(MAX_FILES + 1L).toList();
    Path root = files.size() > MAX_FILES ? null : root(location, files);
    if (root == null) return;
    ObjectNode side = Question.place(root);
    side.setAll(ofFiles);
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
  private static Path root(FileIndex location, List<FileStatus> files) {
    Path root = location.rootPaths().isEmpty() ? null : location.rootPaths().apply(0);
    for (FileStatus file : files) {
      while (root != null && Listing.below(file.getPath(), root) == null) root = root.getParent();
    }
    return root;
  }
}
