package skipindex;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Function;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Function1;
import scala.Function2;
import scala.runtime.AbstractFunction1;

/**
 * Gives each session of a Spark application the rule, as a rule of its own.
 *
 * Sessions that are made of one another, as by newSession, share their extensions. Spark asks
 * these for rules whenever it plans a query, before it asks the session for the rules that run
 * last, so that a session has its rule in its first query. Sessions are not remembered here:
 * a server makes one for each connection.
 */
public class Sessions extends AbstractFunction1<Object, Object> {
  private final Set<SparkSessionExtensions> known = Collections.newSetFromMap(
      new WeakHashMap<SparkSessionExtensions, Boolean>());
  private final Nothing nothing = new Nothing();
  private final Statements statements = new Statements();
  private volatile PlannerCalls planner;

  /** Prune from now on; the arguments are those of PlannerCalls, and that of Statements. */
  public PlannerCalls connect(
      Function<String, Object> plan, Function<String, Object> files, Function<String, Object> told,
      Function<Object, Object> statement, String indexFolder, String settings) {
    statements.connect(statement);
    planner = new PlannerCalls(plan, files, told, indexFolder, settings);
    return planner;
  }

  /** Prune no query of any session any more, also of those that are planned already. */
  public void disconnect() {
    planner.setOn(false);
    planner = null;
    statements.connect(null);
  }

  /** What rules ask; null prunes no query. */
  PlannerCalls planner() {
    return planner;
  }

  /** Give a session the rule, and those that share its extensions. */
  @SuppressWarnings({"rawtypes", "unchecked"}) // a function of any object is one of a session
  public synchronized void add(SparkSession session) {
    SparkSessionExtensions extensions = Compat.extensions(session);
    if (known.add(extensions)) {
      extensions.injectOptimizerRule((Function1) this);
      extensions.injectParser((Function2) statements);
    }
    statements.give(session);
    apply(session);
  }

  @Override
  public Object apply(Object session) {
    PlannerCalls current = planner();
    try {
      give((SparkSession) session, current);
    } catch (Throwable problem) {
      if (current != null) current.report(problem);
    }
    return nothing;
  }

  /** A clone of a session comes with the rule of the other, and goes with its own. */
  @SuppressWarnings("unchecked") // of the list
  private static void give(SparkSession session, PlannerCalls planner) {
    ExperimentalMethods methods = Compat.experimental(session);
    synchronized (methods) {
      List<Rule<LogicalPlan>> rules = new ArrayList<>();
      boolean isThere = planner == null;
      boolean isChanged = false;
      for (Rule<LogicalPlan> rule : Scala.each(methods.extraOptimizations())) {
        boolean isOurs = rule instanceof SkipRule;
        boolean isRight = isOurs && !isThere
            && ((SkipRule) rule).isOf(planner, Compat.state(session));
        if (isOurs && !isRight)
          isChanged = true;
        else
          rules.add(rule);
        if (isRight) isThere = true;
      }
      if (!isThere) rules.add(new SkipRule(planner, Compat.state(session)));
      if (isChanged || !isThere) methods.extraOptimizations_$eq(Scala.listed(rules));
    }
  }

  /** The rule that Spark is given in answer; it changes nothing. */
  @SuppressWarnings("unchecked") // what Rule declares
  private static class Nothing extends PlanRule {
    @Override
    LogicalPlan of(LogicalPlan plan) {
      return plan;
    }
  }
}
