package skipindex;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.immutable.Seq;

/**
 * Gives every scan of Parquet files of a known table a SkippingFileIndex.
 *
 * Scans of other formats, of streams and of several tables at once stay as they are. Each
 * application of the rule makes new file indexes for the very plan that it is applied to, also
 * where scans have one already: Spark optimizes parts of a plan again as parts of another one.
 */
@SuppressWarnings("unchecked") // what Rule declares
public class SkipRule extends PlanRule {
  static final String PARQUET =
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
  LogicalPlan of(LogicalPlan plan) {
    try {
      return new Application(planner.isEnabled(), !Origins.areToldBy(plan)).of(plan);
    } catch (Throwable problem) {
      planner.report(problem);
      // What a former plan needed of the scans is not what this one needs.
      return new Bare().downWithSubqueries(plan);
    }
  }

  /** Takes from scans what a former plan needed of them. */
  private static class Bare extends Change {
    @Override
    LogicalPlan of(Object node) {
      if (!(node instanceof LogicalRelation)) return null;
      LogicalRelation scan = (LogicalRelation) node;
      SkippingFileIndex former = indexOf(scan);
      return former == null
          ? null
          : withIndex(scan, former.renewed(former.scanned.planner, false, former.query));
    }
  }

  /** One application of the rule. */
  private class Application {
    /** Whether files are skipped; else scans lose what a former plan needed of them. */
    private final boolean isEnabled;

    /** Whether no row tells of the file that it is read from, so that another can have it. */
    private final boolean takesRewritten;

    private final Query query = Query.current();
    private final Map<FileIndex, Boolean> made = new IdentityHashMap<>();

    /** Spark's file indexes in plans of which Spark makes filters for other scans. */
    private final Set<FileIndex> shared = new HashSet<>();

    /** By equality, which is that of their folders, the file indexes of the plan. */
    private final Map<FileIndex, FileIndex> bases = new HashMap<>();

    /** Those of them that list other files than an equal one. */
    private final Set<FileIndex> unsure = new HashSet<>();

    Application(boolean isEnabled, boolean takesRewritten) {
      this.isEnabled = isEnabled;
      this.takesRewritten = takesRewritten;
    }

    PlannerCalls planner() {
      return planner;
    }

    void share(LogicalPlan plan) {
      if (plan instanceof LogicalRelation
          && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
        shared.add(baseOf((LogicalRelation) plan));
      }
      for (LogicalPlan one : Scala.each(plan.children())) share(one);
    }

    /** Spark runs one of two exchanges that are equal but for what their scans list. */
    private void compareListings(LogicalPlan node) {
      if (Joins.isOfFiles(node)) {
        FileIndex base = baseOf((LogicalRelation) node);
        FileIndex equal = bases.get(base);
        if (equal == null)
          bases.put(base, base);
        else if (equal != base && query.listing(equal) != query.listing(base)) {
          unsure.add(base);
        }
      }
      for (LogicalPlan one : Scala.each(node.children())) compareListings(one);
      for (LogicalPlan one : Scala.each(node.subqueries())) compareListings(one);
    }

    LogicalPlan of(LogicalPlan plan) {
      // A subquery comes here twice: by itself, and then as a part of the query. Before
      // the second time Spark merges subqueries whose scans are equal.
      if (plan instanceof Subquery) {
        return new Bare().downWithSubqueries(plan);
      }
      LogicalPlan skipping = skipping(plan);
      if (!isEnabled) return skipping;
      compareListings(plan);
      LogicalPlan result = answered(withKeys(skipping));
      askAhead(result);
      return result;
    }

    /** The plan in which files are skipped; its scans do not know the plan around them. */
    LogicalPlan skipping(LogicalPlan plan) {
      return new Scans(this, hasJoin(plan)).down(plan);
    }

    LogicalPlan withKeys(LogicalPlan plan) {
      try {
        LogicalPlan joined = plan;
        if (hasJoin(plan)) joined = Joins.withKeys(plan, shared, unsure);
        return new Subqueries(this).down(joined);
      } catch (Throwable problem) {
        planner.report(problem);
        return plan;
      }
    }

    /** The plan with results that indexes know; its scans know which rows are needed. */
    private LogicalPlan answered(LogicalPlan plan) {
      try {
        return TopRows.in(Answers.in(plan, planner));
      } catch (Throwable problem) {
        planner.report(problem);
        return plan;
      }
    }

    private void askAhead(LogicalPlan node) {
      SkippingFileIndex index = indexOf(node);
      if (index != null) index.askAhead();
      for (LogicalPlan one : Scala.each(node.children())) askAhead(one);
    }

    /** The node with a scan in which files are skipped; null if there is nothing to change. */
    LogicalPlan changed(LogicalPlan node, boolean withSizes) throws java.io.IOException {
      if (node instanceof LogicalRelation) {
        LogicalRelation scan = (LogicalRelation) node;
        return with(scan, skipping(scan));
      }
      if (!(node instanceof Filter)) return null;
      Filter filter = (Filter) node;
      if (!(filter.child() instanceof LogicalRelation)) return null;
      LogicalRelation scan = (LogicalRelation) filter.child();
      Expression condition = filter.condition();
      List<Expression> split = new ArrayList<>();
      if (isEnabled) split(condition, split);
      CatalogPartitions cut = isEnabled ? cut(scan, split) : null;
      if (cut != null) {
        condition = new And(condition, cut.filter);
        scan = withIndex(scan, cut);
      }
      SkippingFileIndex index = skipping(scan);
      if (index != null && isEnabled) {
        index = index.withCondition(normalized(split, scan), withSizes);
      }
      LogicalRelation changed = with(scan, index);
      if (changed == null && cut == null) return null;
      return new Filter(condition, changed == null ? scan : changed);
    }

    /** The partitions that are needed, of those that Spark lists later; null is all. */
    private CatalogPartitions cut(LogicalRelation scan, List<Expression> conjuncts) {
      try {
        FileIndex base = locationOf(scan);
        boolean canCut = canSkip(scan) && isOfCatalog(base) && placeOf(scan) != null
            && !(base instanceof CatalogPartitions) && !Declared.by(scan).isEmpty();
        if (!canCut) return null;
        TableIdentifier table = scan.catalogTable().get().identifier();
        Set<String> names = CatalogPartitions.names(table, session);
        Expression filter = Partitions.condition(
            scan, scanned(scan, placeOf(scan)), normalized(conjuncts, scan), names, query);
        if (filter == null) return null;
        CatalogPartitions cut = new CatalogPartitions(base, table, session, names, filter);
        for (int i = 0; i < conjuncts.size(); i++) {
          // It could not be told from the query's own when it does not count.
          Expression own = conjuncts.get(i);
          if (CatalogPartitions.isAmong(own, cut.added)) return null;
        }
        return cut;
      } catch (Throwable problem) {
        planner.report(problem);
        return null;
      }
    }

    private Seq<Expression> normalized(List<Expression> conjuncts, LogicalRelation scan) {
      return TopRows.normalized(withoutSubqueries(conjuncts), scan);
    }

    private Scanned scanned(LogicalRelation scan, Path root) {
      HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
      boolean isCatalogTable = scan.catalogTable().isDefined();
      return new Scanned(
          relation, planner, root, takesRewritten, isCatalogTable, Declared.by(scan));
    }

    /** A new index for a scan; null if it has one of this application, or can have none. */
    private SkippingFileIndex skipping(LogicalRelation scan) throws java.io.IOException {
      SkippingFileIndex former = indexOf(scan);
      if (former != null) {
        return made.containsKey(former) ? null : former.renewed(planner, takesRewritten, query);
      }
      if (!isEnabled || !canSkip(scan)) return null;
      HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
      Configuration conf = relation.sparkSession().sparkContext().hadoopConfiguration();
      // Without an index, nothing more is known than which partitions are needed.
      boolean isDeclared = !isOfCatalog(relation.location()) && !Declared.by(scan).isEmpty();
      Path root = planner.roots.of(
          relation.location().rootPaths(), placeOf(scan), isDeclared, conf);
      return root == null ? null : SkippingFileIndex.of(scanned(scan, root), query);
    }

    /** The scan with this index; null if it has none that says anything else. */
    private LogicalRelation with(LogicalRelation scan, SkippingFileIndex index) {
      if (index == null) return null;
      SkippingFileIndex former = indexOf(scan);
      boolean isSame = former != null && index.isSame(former);
      made.put(isSame ? former : index, Boolean.TRUE);
      return isSame ? null : withIndex(scan, index);
    }
  }

  /** Changes scans, and those of subqueries, which are planned by themselves. */
  private static class Scans extends Change {
    private final Application application;
    private final boolean withSizes;

    Scans(Application application, boolean withSizes) {
      this.application = application;
      this.withSizes = withSizes;
    }

    @Override
    TreeNode<?> of(Object node) {
      if (node instanceof SubqueryExpression) return subquery((SubqueryExpression) node);
      if (!(node instanceof LogicalPlan)) return null;
      LogicalPlan plan = (LogicalPlan) node;
      try {
        LogicalPlan changed = application.changed(plan, withSizes);
        if (changed != null) plan = changed;
      } catch (Throwable problem) {
        application.planner().report(problem);
      }
      return hasSubquery(plan) ? expressionsDown(plan) : plan;
    }

    /** Spark compares a plan that makes a filter with a side of a join: both are alike. */
    private SubqueryExpression subquery(SubqueryExpression subquery) {
      LogicalPlan plan = subquery.plan();
      if (isFilterMaker(subquery)) application.share(plan);
      return subquery.withNewPlan(application.skipping(plan));
    }
  }

  /** Gives keys to the scans of subqueries. */
  private static class Subqueries extends Change {
    private final Application application;

    Subqueries(Application application) {
      this.application = application;
    }

    @Override
    TreeNode<?> of(Object node) {
      if (node instanceof LogicalPlan && hasSubquery((LogicalPlan) node)) {
        return expressionsDown((LogicalPlan) node);
      }
      if (!(node instanceof SubqueryExpression)) return null;
      SubqueryExpression subquery = (SubqueryExpression) node;
      if (isFilterMaker(subquery)) return subquery;
      return subquery.withNewPlan(application.withKeys(subquery.plan()));
    }
  }

  private static boolean hasSubquery(LogicalPlan node) {
    for (Expression one : Scala.each(node.expressions())) {
      if (SubqueryExpression.hasSubquery(one)) return true;
    }
    return false;
  }

  /**
   * Whether a subquery makes a filter for scans, of partitions or by a Bloom filter.
   *
   * Spark makes these filters of the rows of a join's side, which it has anyway: if it finds
   * that the scans of both are equal.
   */
  private static boolean isFilterMaker(SubqueryExpression subquery) {
    if (subquery.getClass().getSimpleName().equals("DynamicPruningSubquery")) return true;
    LogicalPlan plan = subquery.plan();
    if (!(plan instanceof Aggregate)) return false;
    for (Expression one : Scala.each(plan.expressions()))
      if (hasBloomFilter(one)) return true;
    return false;
  }

  private static boolean hasBloomFilter(Expression expression) {
    if (expression.getClass().getSimpleName().equals("BloomFilterAggregate")) return true;
    for (Expression one : Scala.each(expression.children()))
      if (hasBloomFilter(one)) return true;
    return false;
  }

  /** Only a join asks how large a scan is. */
  static boolean hasJoin(LogicalPlan plan) {
    if (plan instanceof Join) return true;
    for (LogicalPlan one : Scala.each(plan.children()))
      if (hasJoin(one)) return true;
    return false;
  }

  /** The conjuncts of a condition that are the same whenever they are computed. */
  static void split(Expression condition, List<Expression> conjuncts) {
    List<Expression> pending = new ArrayList<>();
    pending.add(condition);
    while (!pending.isEmpty()) {
      Expression one = pending.remove(pending.size() - 1);
      if (one instanceof And) {
        pending.add(((And) one).right());
        pending.add(((And) one).left());
      } else if (one.deterministic())
        conjuncts.add(one);
    }
  }

  private static List<Expression> withoutSubqueries(List<Expression> conjuncts) {
    List<Expression> found = new ArrayList<>();
    for (Expression one : conjuncts) {
      if (!SubqueryExpression.hasSubquery(one)) found.add(one);
    }
    return found;
  }

  private static boolean canSkip(LogicalRelation scan) {
    if (scan.isStreaming() || !(scan.relation() instanceof HadoopFsRelation)) return false;
    String kind = locationOf(scan).getClass().getSimpleName();
    boolean isListing = kind.equals("InMemoryFileIndex") || isOfCatalog(locationOf(scan));
    HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
    return isListing && relation.fileFormat().getClass().getName().equals(PARQUET);
  }

  /** Whether folders are listed later, and only those that a filter of partitions leaves. */
  static boolean isOfCatalog(FileIndex index) {
    return index instanceof CatalogPartitions
        || index.getClass().getSimpleName().equals("CatalogFileIndex");
  }

  /** The folder that the catalog has for a table; null if there is none. */
  private static Path placeOf(LogicalRelation scan) {
    if (scan.catalogTable().isEmpty()) return null;
    scala.Option<?> place = scan.catalogTable().get().storage().locationUri();
    return place.isEmpty() ? null : new Path((java.net.URI) place.get());
  }

  /** The file index of a scan of files. */
  static FileIndex locationOf(LogicalRelation scan) {
    return ((HadoopFsRelation) scan.relation()).location();
  }

  /** Spark's own file index of a scan of files. */
  static FileIndex baseOf(LogicalRelation scan) {
    SkippingFileIndex index = indexOf(scan);
    return index == null ? locationOf(scan) : index.scanned.base;
  }

  /** The index of a scan in which files are skipped; null for all other nodes. */
  static SkippingFileIndex indexOf(LogicalPlan node) {
    if (!(node instanceof LogicalRelation)) return null;
    LogicalRelation scan = (LogicalRelation) node;
    if (!(scan.relation() instanceof HadoopFsRelation)) return null;
    FileIndex location = locationOf(scan);
    return location instanceof SkippingFileIndex ? (SkippingFileIndex) location : null;
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
