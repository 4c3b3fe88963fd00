package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.runtime.AbstractFunction0;

/**
 * The keys that one side of a join has, of one column or more: the side runs for them, once.
 *
 * No scan of the side has keys of its own, whatever it is joined with, so that no side waits
 * for another one. A side that has to shuffle rows does not run: it would do so twice.
 */
class KeyList {
  static final int MAX_KEYS = 200000;

  /** What Spark says of jobs that were stopped from without, since 4.0 and before. */
  private static final Pattern CANCELLED = Pattern.compile(
      "\\[SPARK_JOB_CANCELLED\\]|^Job \\d+ cancelled");

  private static final int MAX_CAUSES = 20;
  private static final AtomicLong TAGS = new AtomicLong();

  /** Whether this thread plans a side for its keys. */
  private static final ThreadLocal<Boolean> PLANS_KEYS = new ThreadLocal<>();

  private static final ExecutorService THREADS = Executors.newCachedThreadPool(new ThreadFactory() {
    @Override
    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, "skipindex-keys");
      thread.setDaemon(true);
      return thread;
    }
  });

  private final DataType[] types;
  private final LogicalPlan keys;
  private final LogicalPlan canonical;
  private final SessionState session;
  private final Query query;

  /** The numbers that the query has for what the side's scans list. */
  private final List<Integer> listings = new ArrayList<>();

  private volatile boolean isStopped;
  private final String tag = "skipindex-keys-" + TAGS.incrementAndGet();

  /** Of each column. */
  private Future<ArrayNode[]> lists;

  private SparkContext context;

  /**
   * columns: attributes of the side.
   * side: its scans have no keys.
   */
  KeyList(List<Attribute> columns, LogicalPlan side, SessionState session, Query query) {
    this.types = new DataType[columns.size()];
    for (int i = 0; i < types.length; i++) types[i] = ((Attribute) columns.get(i)).dataType();
    this.keys = new Project(Scala.listed(columns), ungrouped(side));
    this.canonical = (LogicalPlan) keys.canonicalized();
    this.session = session;
    this.query = query;
    addListings(side);
  }

  /** The same values without grouping, which would shuffle rows to have each value once. */
  private static LogicalPlan ungrouped(LogicalPlan node) {
    List<LogicalPlan> children = new ArrayList<>();
    for (LogicalPlan one : Scala.each(node.children())) children.add(ungrouped(one));
    if (node instanceof Aggregate) {
      return new Project(((Aggregate) node).aggregateExpressions(), (LogicalPlan) children.get(0));
    }
    return children.isEmpty() ? node : (LogicalPlan) node.withNewChildren(Scala.listed(children));
  }

  private void addListings(LogicalPlan node) {
    if (Joins.isOfFiles(node)) {
      listings.add(Integer.valueOf(query.listing(SkipRule.baseOf((LogicalRelation) node))));
    }
    for (LogicalPlan one : Scala.each(node.children())) addListings(one);
  }

  static boolean isPlanning() {
    return PLANS_KEYS.get() != null;
  }

  /** Starts the side, unless it has started. */
  void start() {
    started();
  }

  private synchronized void forget(Future<ArrayNode[]> stopped) {
    if (lists == stopped) lists = null;
  }

  private synchronized Future<ArrayNode[]> started() {
    if (lists != null) return lists;
    Literal most = new Literal(Integer.valueOf(MAX_KEYS + 1), IntegerType$.MODULE$);
    LogicalPlan some = new LocalLimit(most, keys);
    // It tells its session and its tracker, and is not executed: see planned().
    final QueryExecution execution = session.executePlan(
        some, CommandExecutionMode$.MODULE$.SKIP());
    context = execution.sparkSession().sparkContext();
    lists = SQLExecution$.MODULE$.withThreadLocalCaptured(
        execution.sparkSession(), THREADS, new AbstractFunction0<ArrayNode[]>() {
          @Override
          public ArrayNode[] apply() {
            context.addJobTag(tag);
            SparkPlan planned = planned(execution);
            if (isStopped || shuffles(planned)) return null;
            return lists(planned.executeCollect());
          }
        });
    return lists;
  }

  /** Whoever runs the query has stopped its jobs, so that it fails, as it does without keys. */
  static class Cancelled extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Cancelled(Throwable cause) {
      super(cause);
    }

    /** What says so; null if it was something else that failed. */
    static Throwable in(Throwable problem) {
      Throwable one = problem;
      for (int i = 0; one != null && i < MAX_CAUSES; i++) {
        if (one instanceof SparkException
            && CANCELLED.matcher(String.valueOf(one.getMessage())).find())
          return one;
        one = one.getCause();
      }
      return null;
    }
  }

  private static boolean shuffles(SparkPlan node) {
    if (node instanceof ShuffleExchangeLike) return true;
    for (SparkPlan one : Scala.each(node.children()))
      if (shuffles(one)) return true;
    return false;
  }

  /**
   * The side as Spark runs it, over the very files that the query lists.
   *
   * The execution is not asked for its plan. It would look for cached plans first, and Spark
   * takes a scan of a folder for a cached one of the same folder, whatever files each of them
   * lists. It would analyze the side too, which the query has optimized already.
   */
  private SparkPlan planned(QueryExecution execution) {
    PLANS_KEYS.set(Boolean.TRUE);
    try {
      LogicalPlan plan = (LogicalPlan) session.optimizer().executeAndTrack(
          execution.logical(), execution.tracker());
      QueryExecution$ spark = QueryExecution$.MODULE$;
      return spark.prepareForExecution(
          spark.preparations(execution.sparkSession(), scala.Option.empty(), false),
          (SparkPlan) session.planner().plan(plan).next());
    } finally {
      PLANS_KEYS.remove();
    }
  }

  /**
   * The keys of one column; null if they are not known, or too many.
   *
   * Throws NoAnswer: the query has no time left for them, which is told once; Cancelled: its
   * jobs were stopped.
   */
  ArrayNode of(int column, Scanned scanned) {
    if (isStopped) return null;
    Future<ArrayNode[]> asked = started();
    boolean isDone = false;
    try {
      Object found = scanned.planner.waitForKeys(asked, query, scanned.root);
      isDone = true;
      return found == null ? null : ((ArrayNode[]) found)[column];
    } catch (IllegalStateException failed) {
      if (isStopped) return null; // by another column or scan that waited for them
      Throwable stop = Cancelled.in(failed);
      if (stop == null) throw failed;
      isDone = true;
      forget(asked); // the query may run again
      throw new Cancelled(stop);
    } finally {
      if (!isDone) {
        isStopped = true;
        context.cancelJobsWithTag(tag);
      }
    }
  }

  private ArrayNode[] lists(InternalRow[] rows) {
    if (rows.length > MAX_KEYS) return null;
    ArrayNode[] lists = new ArrayNode[types.length];
    for (int i = 0; i < lists.length; i++) lists[i] = list(rows, i);
    return lists;
  }

  private ArrayNode list(InternalRow[] rows, int column) {
    DataType type = types[column];
    Set<Object> seen = new HashSet<>();
    ArrayNode list = Json.array();
    for (InternalRow row : rows) {
      if (row.isNullAt(column)) continue;
      Object value = row.get(column, type);
      if (type instanceof StringType) {
        String string = value.toString();
        // Bytes that are no UTF-8 have no text of their own.
        if (!UTF8String.fromString(string).equals(value)) return null;
        if (seen.add(string)) list.add(string);
      } else if (seen.add(value))
        list.add(((Number) value).longValue());
    }
    return list;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof KeyList)) return false;
    KeyList keys = (KeyList) other;
    return query.isSame(keys.query) && listings.equals(keys.listings)
        && canonical.equals(keys.canonical);
  }

  @Override
  public int hashCode() {
    return canonical.hashCode();
  }
}
