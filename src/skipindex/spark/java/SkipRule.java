package skipindex;

import java.util.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.immutable.Seq;

/**
 * Gives every scan of Parquet files of a known table a SkippingFileIndex, and every scan of a
 * known table of Iceberg fewer tasks.
 *
 * Scans of other formats, of streams and of several tables at once stay as they are. Each
 * application of the rule makes new file indexes for the very plan that it is applied to, also
 * where scans have one already: Spark optimizes parts of a plan again as parts of another one.
 */
public class SkipRule extends Rule<LogicalPlan> {
  private static final String PARQUET =
      "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat";
  private final PlannerCalls planner;
  private final SessionState session;

  SkipRule(PlannerCalls planner, SessionState session) {
    this.planner = planner;
    this.session = session;
  }

  boolean isOf(PlannerCalls planner, SessionState session) {
    return this.planner == planner && this.session == session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    try {
      // A subquery comes here twice: by itself, and then as a part of the query. Before
      // the second time Spark merges subqueries whose scans are equal.
      if (plan instanceof Subquery) return bare(plan);
      if (planner.isEnabled()) return new Application(plan).of(plan);
      if (planner.isObserving()) new Application(plan).observe(plan);
      return bare(plan);
    } catch (Throwable problem) {
      planner.report(problem);
      // What a former plan needed of the scans is not what this one needs.
      return bare(plan);
    }
  }

  /** Takes from scans, in subqueries too, what a former plan needed of them. */
  private static LogicalPlan bare(LogicalPlan plan) {
    return Change.downWithSubqueries(plan, node -> {
      Iceberg iceberg = Iceberg.of(node);
      if (iceberg != null) return iceberg.whole();
      SkippingFileIndex former = indexOf(node);
      if (former == null) return null;
      var index = former.renewed(former.scanned.planner(), false, former.query);
      return withIndex((LogicalRelation) node, index);
    });
  }

  /** One application of the rule. */
  private class Application {
    /** Whether no row tells of the file that it is read from, so that another can have it. */
    private final boolean takesRewritten;

    /** Whether scans of Iceberg may have fewer tasks. */
    private final boolean takesFewerTasks;

    private final Query query = Query.current();
    private final Set<Object> made = Collections.newSetFromMap(new IdentityHashMap<>());

    /** Spark's file indexes in plans of which Spark makes filters for other scans. */
    private final Set<FileIndex> shared = new HashSet<>();

    /** By equality, which is that of their folders, the file indexes of the plan. */
    private final Map<FileIndex, FileIndex> bases = new HashMap<>();

    /** Those of them that list other files than an equal one. */
    private final Set<FileIndex> unsure = new HashSet<>();

    Application(LogicalPlan plan) {
      takesRewritten = !Origins.areToldBy(plan);
      takesFewerTasks = !Iceberg.isChange(plan);
    }

    void share(LogicalPlan plan) {
      for (LogicalPlan leaf : Scala.each(plan.collectLeaves())) {
        FileIndex base = baseOf(leaf);
        if (base != null) shared.add(base);
      }
    }

    /** Spark runs one of two exchanges that are equal but for what their scans list. */
    private void compareListings(LogicalPlan node) {
      if (Joins.isOfFiles(node)) {
        FileIndex base = baseOf(node);
        FileIndex equal = bases.putIfAbsent(base, base);
        if (equal != null && equal != base && query.listing(equal) != query.listing(base)) {
          unsure.add(base);
        }
      }
      for (LogicalPlan one : Scala.each(node.children())) compareListings(one);
      for (LogicalPlan one : Scala.each(node.subqueries())) compareListings(one);
    }

    LogicalPlan of(LogicalPlan plan) {
      LogicalPlan skipping = skipping(plan);
      compareListings(plan);
      // With results that indexes know; its scans know which rows are needed.
      LogicalPlan keyed = tried(withKeys(skipping), one -> PlannedRows.in(one, shared));
      LogicalPlan result = tried(keyed, one -> TopRows.in(Answers.in(one, planner)));
      for (LogicalPlan leaf : Scala.each(result.collectLeaves())) {
        SkippingFileIndex index = indexOf(leaf);
        if (index != null) index.askAhead();
      }
      return result;
    }

    /** Asks what would be skipped of the scans below conditions; no query waits for it. */
    void observe(LogicalPlan plan) {
      Change.downWithSubqueries(plan, node -> {
        try {
          if (node instanceof Filter filter && filter.child() instanceof LogicalRelation scan
              && canSkip(scan)) {
            SkippingFileIndex index = indexed(scan);
            Seq<Expression> condition = normalized(split(filter.condition()), scan);
            if (index != null) index.withCondition(condition, false).observe();
          }
        } catch (Throwable problem) {
          planner.report(problem);
        }
        return null;
      });
    }

    /** The plan in which files are skipped; its scans do not know the plan around them. */
    LogicalPlan skipping(LogicalPlan plan) {
      boolean withSizes = hasJoin(plan);
      return Change.down(plan, node -> changedNode(node, withSizes));
    }

    /** A scan that skips files, or a subquery, which is planned by itself. */
    private TreeNode<?> changedNode(TreeNode<?> node, boolean withSizes) {
      if (node instanceof SubqueryExpression subquery) {
        // Spark compares a plan that makes a filter with a side of a join: both are alike.
        if (isFilterMaker(subquery)) share(subquery.plan());
        return subquery.withNewPlan(skipping(subquery.plan()));
      }
      if (!(node instanceof LogicalPlan plan)) return null;
      try {
        LogicalPlan changed = changed(plan, withSizes);
        if (changed != null) plan = changed;
      } catch (Throwable problem) {
        planner.report(problem);
      }
      return hasSubquery(plan) ? Change.expressionsDown(plan, one -> changedNode(one, withSizes))
                               : plan;
    }

    private LogicalPlan withKeys(LogicalPlan plan) {
      return tried(plan, one -> {
        LogicalPlan joined = hasJoin(one) ? Joins.withKeys(one, shared, unsure) : one;
        return Change.down(joined, this::keyedNode);
      });
    }

    /** Gives keys to the scans of subqueries. */
    private TreeNode<?> keyedNode(TreeNode<?> node) {
      if (node instanceof LogicalPlan plan && hasSubquery(plan)) {
        return Change.expressionsDown(plan, this::keyedNode);
      }
      if (!(node instanceof SubqueryExpression subquery)) return null;
      return isFilterMaker(subquery) ? subquery : subquery.withNewPlan(withKeys(subquery.plan()));
    }

    /** What is made of a plan; the plan itself if that fails. */
    private LogicalPlan tried(LogicalPlan plan, UnaryOperator<LogicalPlan> made) {
      try {
        return made.apply(plan);
      } catch (Throwable problem) {
        planner.report(problem);
        return plan;
      }
    }

    /** The node with a scan in which files are skipped; null if there is nothing to change. */
    LogicalPlan changed(LogicalPlan node, boolean withSizes) throws Exception {
      if (node instanceof LogicalRelation scan) return with(scan, skipping(scan));
      Iceberg tasks = made.contains(node) ? null : Iceberg.of(node);
      if (tasks != null) return tasks.whole();
      tasks = node instanceof Filter ? Iceberg.of(((Filter) node).child()) : null;
      if (tasks != null) return takesFewerTasks ? left((Filter) node, tasks) : null;
      if (!(node instanceof Filter filter && filter.child() instanceof LogicalRelation scan)) {
        return null;
      }
      Expression condition = filter.condition();
      List<Expression> split = split(condition);
      CatalogPartitions cut = cut(scan, split);
      if (cut != null) {
        condition = new And(condition, cut.filter);
        scan = withIndex(scan, cut);
      }
      SkippingFileIndex index = skipping(scan);
      if (index != null) index = index.withCondition(normalized(split, scan), withSizes);
      LogicalRelation changed = with(scan, index);
      if (changed == null && cut == null) return null;
      return new Filter(condition, changed == null ? scan : changed);
    }

    /** A condition over the tasks that it leaves. */
    private LogicalPlan left(Filter filter, Iceberg scan) throws Exception {
      Expression condition = filter.condition();
      LogicalPlan left = scan.left(normalized(split(condition), scan.node()), planner, query);
      made.add(left);
      return new Filter(condition, left);
    }

    /** The partitions that are needed, of those that Spark lists later; null is all. */
    private CatalogPartitions cut(LogicalRelation scan, List<Expression> conjuncts) {
      try {
        FileIndex base = locationOf(scan);
        boolean canCut = canSkip(scan) && isOfCatalog(base) && placeOf(scan) != null
            && !(base instanceof CatalogPartitions) && !Scanned.declaredBy(scan).isEmpty();
        if (!canCut) return null;
        var table = scan.catalogTable().get().identifier();
        Set<String> names = CatalogPartitions.names(table, session);
        Expression filter = Partitions.condition(
            scan, scanned(scan, placeOf(scan)), normalized(conjuncts, scan), names, query);
        if (filter == null) return null;
        var cut = new CatalogPartitions(base, table, session, names, filter);
        // It could not be told from the query's own when it does not count.
        boolean isOwn = conjuncts.stream().anyMatch(own -> Partitions.isAmong(own, cut.added));
        return isOwn ? null : cut;
      } catch (Throwable problem) {
        planner.report(problem);
        return null;
      }
    }

    private Seq<Expression> normalized(List<Expression> conjuncts, LogicalPlan scan) {
      var own = conjuncts.stream().filter(one -> !SubqueryExpression.hasSubquery(one)).toList();
      return Below.normalized(own, scan);
    }

    private Scanned scanned(LogicalRelation scan, Path root) {
      return new Scanned(
          (HadoopFsRelation) scan.relation(),
          planner,
          root,
          takesRewritten,
          scan.catalogTable().isDefined(),
          Scanned.declaredBy(scan),
          new AtomicReference<>());
    }

    /** A new index for a scan; null if it has one of this application, or can have none. */
    private SkippingFileIndex skipping(LogicalRelation scan) throws java.io.IOException {
      SkippingFileIndex former = indexOf(scan);
      if (former != null) {
        return made.contains(former) ? null : former.renewed(planner, takesRewritten, query);
      }
      return canSkip(scan) ? indexed(scan) : null;
    }

    /** A new index for a scan of Spark's own; null if its folder is no table. */
    private SkippingFileIndex indexed(LogicalRelation scan) throws java.io.IOException {
      HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
      var conf = relation.sparkSession().sparkContext().hadoopConfiguration();
      // Without an index, nothing more is known than which partitions are needed.
      boolean isDeclared = !isOfCatalog(relation.location()) && !Scanned.declaredBy(scan).isEmpty();
      Path root = planner.roots.of(
          relation.location().rootPaths(), placeOf(scan), isDeclared, conf);
      if (root != null) return SkippingFileIndex.of(scanned(scan, root), query);
      if (!Scanned.isPlanned(relation.location())) planner.tellUnknown(relation.location());
      return null;
    }

    /** The scan with this index; null if it has none that says anything else. */
    private LogicalRelation with(LogicalRelation scan, SkippingFileIndex index) {
      if (index == null) return null;
      SkippingFileIndex former = indexOf(scan);
      boolean isSame = former != null && index.isSame(former);
      made.add(isSame ? former : index);
      return isSame ? null : withIndex(scan, index);
    }
  }

  private static boolean hasSubquery(LogicalPlan node) {
    return Scala.stream(node.expressions()).anyMatch(SubqueryExpression::hasSubquery);
  }

  /**
   * Whether a subquery makes a filter for scans, of partitions or by a Bloom filter.
   *
   * Spark makes these filters of the rows of a join's side, which it has anyway: if it finds
   * that the scans of both are equal.
   */
  private static boolean isFilterMaker(SubqueryExpression subquery) {
    if (isNamed(subquery, "DynamicPruningSubquery")) return true;
    return subquery.plan() instanceof Aggregate plan
        && Scala.stream(plan.expressions())
               .anyMatch(one -> one.exists(part -> isNamed(part, "BloomFilterAggregate")));
  }

  /** Whether it is of a class that not all versions of Spark have, or have there. */
  static boolean isNamed(Object one, String type) {
    return one.getClass().getSimpleName().equals(type);
  }

  /** Only a join asks how large a scan is. */
  static boolean hasJoin(LogicalPlan plan) {
    return plan.exists(one -> one instanceof Join);
  }

  /** The conjuncts of a condition that are the same whenever they are computed. */
  static List<Expression> split(Expression condition) {
    var conjuncts = new ArrayList<Expression>();
    var pending = new ArrayDeque<>(List.of(condition));
    while (!pending.isEmpty()) {
      Expression one = pending.pop();
      if (one instanceof And both) {
        pending.push(both.right());
        pending.push(both.left());
      } else if (one.deterministic())
        conjuncts.add(one);
    }
    return conjuncts;
  }

  private static boolean canSkip(LogicalRelation scan) {
    if (scan.isStreaming() || !(scan.relation() instanceof HadoopFsRelation relation)) return false;
    FileIndex index = relation.location();
    return (isListing(index) || isOfCatalog(index)) && isParquet(relation);
  }

  static boolean isParquet(HadoopFsRelation relation) {
    return relation.fileFormat().getClass().getName().equals(PARQUET);
  }

  /** Whether files were listed when the relation was made. */
  static boolean isListing(FileIndex index) {
    return index instanceof PlannedRelation.Index planned ? planned.isPruned
                                                          : isNamed(index, "InMemoryFileIndex");
  }

  /** Whether folders are listed later, and only those that a filter of partitions leaves. */
  static boolean isOfCatalog(FileIndex index) {
    return index instanceof CatalogPartitions || isNamed(index, "CatalogFileIndex");
  }

  /** The folder that the catalog has for a table; null if there is none. */
  private static Path placeOf(LogicalRelation scan) {
    if (scan.catalogTable().isEmpty()) return null;
    var place = scan.catalogTable().get().storage().locationUri();
    return place.isEmpty() ? null : new Path(place.get());
  }

  /** The file index of a scan of files; null for all other nodes. */
  static FileIndex locationOf(TreeNode<?> node) {
    return node instanceof LogicalRelation scan
            && scan.relation() instanceof HadoopFsRelation relation
        ? relation.location()
        : null;
  }

  /** Spark's own file index of a scan of files; null for all other nodes. */
  static FileIndex baseOf(TreeNode<?> node) {
    return locationOf(node) instanceof SkippingFileIndex index ? index.scanned.base()
                                                               : locationOf(node);
  }

  /** The index of a scan in which files are skipped; null for all other nodes. */
  static SkippingFileIndex indexOf(TreeNode<?> node) {
    return locationOf(node) instanceof SkippingFileIndex index ? index : null;
  }

  /** The scan of the same relation by another file index. */
  static LogicalRelation withIndex(LogicalRelation scan, FileIndex index) {
    HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
    HadoopFsRelation skipping = new HadoopFsRelation(
        index,
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options(),
        relation.sparkSession());
    return Compat.withRelation(scan, skipping);
  }
}
