package skipindex;

import java.util.*;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkStrategy;

/**
 * Gives each session of a Spark application the rule, as a rule of its own.
 *
 * Sessions that are made of one another, as by newSession, share their extensions. Spark asks
 * these for rules whenever it plans a query, before it asks the session for the rules that run
 * last, so that a session has its rule in its first query. Sessions are not remembered here:
 * a server makes one for each connection.
 */
public class Sessions {
  private final Set<SparkSessionExtensions> known = Collections.newSetFromMap(new WeakHashMap<>());
  private final Nothing nothing = new Nothing();
  private final Statements statements = new Statements();
  private volatile PlannerCalls planner;

  /** Prune from now on; the arguments are those of PlannerCalls, and that of Statements. */
  public PlannerCalls connect(
      Function<String, Object> python, Function<Object, Object> statement, String indexFolder,
      String settings) {
    statements.connect(statement);
    planner = new PlannerCalls(python, indexFolder, settings);
    return planner;
  }

  /** Prune no query of any session any more, also of those that are planned already. */
  public void disconnect() {
    planner.isOn = false;
    planner = null;
    statements.connect(null);
  }

  /** What rules ask; null prunes no query. */
  PlannerCalls planner() {
    return planner;
  }

  /** Give a session the rule, and those that share its extensions. */
  public synchronized void add(SparkSession session) {
    SparkSessionExtensions extensions = Compat.classic(session).extensions();
    if (known.add(extensions)) {
      extensions.injectOptimizerRule(this::rule);
      extensions.injectParser(statements::inFrontOf);
    }
    statements.give(session);
    rule(session);
  }

  /** Give a session its own rule; what Spark is given in answer changes nothing. */
  Rule<LogicalPlan> rule(SparkSession session) {
    PlannerCalls current = planner();
    try {
      give(session, current);
    } catch (Throwable problem) {
      if (current != null) current.report(problem);
    }
    return nothing;
  }

  /** A clone of a session comes with the rule of the other, and goes with its own. */
  private static void give(SparkSession session, PlannerCalls planner) {
    var methods = Compat.classic(session).experimental();
    synchronized (methods) {
      var former = Scala.<Rule<LogicalPlan>>list(methods.extraOptimizations());
      var rules = new ArrayList<>(former);
      var state = Compat.classic(session).sessionState();
      rules.removeIf(one -> one instanceof SkipRule ours && !ours.isOf(planner, state));
      boolean isThere = rules.stream().anyMatch(one -> one instanceof SkipRule);
      if (planner != null && !isThere) rules.add(new SkipRule(planner, state));
      var strategies = Scala.<SparkStrategy>list(methods.extraStrategies());
      boolean isNarrowing = strategies.remove(Above.STRATEGY);
      if (planner != null) strategies.add(Above.STRATEGY);
      if (isNarrowing != (planner != null)) methods.extraStrategies_$eq(Scala.listed(strategies));
      if (!rules.equals(former)) methods.extraOptimizations_$eq(Scala.listed(rules));
    }
  }

  private static class Nothing extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return plan;
    }
  }
}
