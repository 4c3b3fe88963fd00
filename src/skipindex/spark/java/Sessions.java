package skipindex;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Function;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Gives each session of a Spark application the rule, as a rule of its own.
 *
 * Sessions that are made of one another, as by newSession, share their extensions. Spark asks
 * these for rules whenever it plans a query, before it asks the session for the rules that run
 * last, so that a session has its rule in its first query. Sessions are not remembered here:
 * a server makes one for each connection.
 */
public class Sessions extends scala.runtime.AbstractFunction1 {
    private final Set known = Collections.newSetFromMap(new WeakHashMap());
    private final Nothing nothing = new Nothing();
    private volatile PlannerCalls planner;
    /** The statements of these sessions. */
    public final Statements statements = new Statements();

    /** Prune from now on; the arguments are those of PlannerCalls, and that of Statements. */
    public PlannerCalls connect(
            Function plan,
            Function files,
            Function usesOf,
            Function told,
            Function statement,
            String indexFolder,
            String settings) {
        statements.connect(statement);
        planner = new PlannerCalls(plan, files, usesOf, told, indexFolder, settings);
        return planner;
    }

    /** Prune no query of any session any more, also of those that are planned already. */
    public void disconnect() {
        planner.setOn(false);
        planner = null;
        statements.connect(null);
    }

    /** Give a session the rule, and those that share its extensions. */
    public synchronized void add(SESSION session) {
        boolean isNew = known.add(session.extensions());
        if (isNew) session.extensions().injectOptimizerRule(this);
        statements.add(session, session.extensions(), isNew, session.sessionState());
        apply(session);
    }

    public Object apply(Object session) {
        PlannerCalls current = planner;
        try {
            give((SESSION) session, current);
        } catch (Throwable problem) {
            if (current != null) current.report(problem);
        }
        return nothing;
    }

    /** A clone of a session comes with the rule of the other, and goes with its own. */
    private static void give(SESSION session, PlannerCalls planner) {
        ExperimentalMethods methods = session.experimental();
        synchronized (methods) {
            ArrayList rules = new ArrayList();
            boolean isThere = planner == null;
            boolean isChanged = false;
            scala.collection.Iterator each = methods.extraOptimizations().iterator();
            while (each.hasNext()) {
                Object rule = each.next();
                boolean isOurs = rule instanceof SkipRule;
                boolean isRight = isOurs && !isThere
                    && ((SkipRule) rule).isOf(planner, session.sessionState());
                if (isOurs && !isRight) isChanged = true;
                else rules.add(rule);
                if (isRight) isThere = true;
            }
            if (!isThere) rules.add(new SkipRule(planner, session.sessionState()));
            if (isChanged || !isThere) methods.extraOptimizations_$eq(TO_SEQ(rules));
        }
    }

    /** The rule that Spark is given in answer; it changes nothing. */
    static class Nothing extends org.apache.spark.sql.catalyst.rules.Rule {
        public TreeNode apply(TreeNode plan) {
            return plan;
        }
    }
}
