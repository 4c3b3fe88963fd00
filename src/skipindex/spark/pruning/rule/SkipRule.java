package skipindex;

import java.util.ArrayList;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;

/**
 * Gives every scan of Parquet files of a known table a SkippingFileIndex.
 *
 * Scans of other formats, of streams and of several tables at once stay as they are.
 */
public class SkipRule extends org.apache.spark.sql.catalyst.rules.Rule {
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

    public TreeNode apply(TreeNode plan) {
        if (!planner.isEnabled()) return plan;
        try {
            LogicalPlan logical = (LogicalPlan) plan;
            boolean isJoined = hasJoin(logical);
            Scans scans = new Scans(this, isJoined);
            LogicalPlan skipping = (LogicalPlan) logical.transform(scans);
            if (isJoined) JoinKeys.attach(skipping, session);
            // A subquery comes here twice: by itself, and then as a part of the query.
            LogicalPlan result = logical instanceof Subquery ? skipping : answered(skipping);
            for (int i = 0; i < scans.found.size(); i++) {
                index((LogicalRelation) scans.found.get(i)).askAhead();
            }
            return result;
        } catch (Throwable problem) {
            planner.report(problem);
            return plan;
        }
    }

    /** The plan with results that indexes know; its scans know which rows are needed. */
    private LogicalPlan answered(LogicalPlan plan) {
        LogicalPlan answered = plan;
        try {
            answered = Answers.in(plan, planner);
            TopRows.attach(answered);
        } catch (Throwable problem) {
            planner.report(problem);
        }
        return answered;
    }

    /** Only a join asks how large a scan is. */
    static boolean hasJoin(LogicalPlan plan) {
        if (plan instanceof Join) return true;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) if (hasJoin((LogicalPlan) children.next())) return true;
        return false;
    }

    static class Scans extends scala.runtime.AbstractPartialFunction {
        final SkipRule rule;
        final boolean withSizes;
        /** Those that have got an index and stand below a condition. */
        final ArrayList found = new ArrayList();

        Scans(SkipRule rule, boolean withSizes) {
            this.rule = rule;
            this.withSizes = withSizes;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation || node instanceof Filter;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            try {
                LogicalPlan changed = rule.changed(node, this);
                if (changed != null) return changed;
            } catch (Throwable problem) {
                rule.planner.report(problem);
            }
            return otherwise.apply(node);
        }
    }

    /** The plan in which files are skipped; null if there is nothing to change. */
    LogicalPlan changed(Object node, Scans scans) throws java.io.IOException {
        if (node instanceof LogicalRelation) return skipping((LogicalRelation) node);
        if (!(node instanceof Filter)) return null;
        Filter filter = (Filter) node;
        if (!(filter.child() instanceof LogicalRelation)) return null;
        LogicalRelation scan = skipping((LogicalRelation) filter.child());
        if (scan == null) return null;
        ArrayList split = new ArrayList();
        split(filter.condition(), split);
        SEQ conjuncts = DataSourceStrategy$.MODULE$.normalizeExprs(TO_SEQ(split), scan.output());
        index(scan).setCondition(conjuncts, scans.withSizes);
        scans.found.add(scan);
        return new Filter(filter.condition(), scan);
    }

    static SkippingFileIndex index(LogicalRelation scan) {
        return (SkippingFileIndex) ((HadoopFsRelation) scan.relation()).location();
    }

    /** The conjuncts of a condition that are the same whenever they are computed. */
    static void split(Expression condition, ArrayList conjuncts) {
        ArrayList pending = new ArrayList();
        pending.add(condition);
        while (!pending.isEmpty()) {
            Expression one = (Expression) pending.remove(pending.size() - 1);
            if (one instanceof And) {
                pending.add(((And) one).right());
                pending.add(((And) one).left());
            } else if (one.deterministic()) conjuncts.add(one);
        }
    }

    /** The scan with a SkippingFileIndex; null if it has one, or can have none. */
    LogicalRelation skipping(LogicalRelation scan) throws java.io.IOException {
        if (scan.isStreaming() || !(scan.relation() instanceof HadoopFsRelation)) return null;
        HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
        FileIndex location = relation.location();
        String kind = location.getClass().getSimpleName();
        boolean isListing = kind.equals("InMemoryFileIndex") || kind.equals("CatalogFileIndex");
        if (!isListing || !relation.fileFormat().getClass().getName().equals(PARQUET)) return null;
        Path root = null;
        SEQ paths = location.rootPaths();
        for (int i = 0; i < paths.size(); i++) {
            Path path = (Path) paths.apply(i);
            if (root != null && isBelow(path, root)) continue;
            Path table = planner.tableOf(path, relation.sparkSession().sparkContext().hadoopConfiguration());
            if (table == null) continue; // the files there are unknown, so they stay
            if (root != null && !table.equals(root)) return null;
            root = table;
        }
        if (root == null) return null;
        return withIndex(
            scan, new SkippingFileIndex(relation, planner, root, scan.catalogTable().isDefined()));
    }

    /** The scan of the same relation by another file index. */
    static LogicalRelation withIndex(LogicalRelation scan, SkippingFileIndex index) {
        HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
        HadoopFsRelation skipping = new HadoopFsRelation(
            index, relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(),
            relation.fileFormat(), relation.options(), relation.sparkSession());
        return scan.copy(
            skipping, scan.output(), scan.catalogTable(), scan.isStreaming() SCAN_STREAM);
    }

    private static boolean isBelow(Path path, Path root) {
        return path.toUri().getPath().startsWith(root.toUri().getPath() + "/");
    }
}
