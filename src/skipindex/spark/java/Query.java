package skipindex;

import java.util.*;
import java.util.concurrent.Callable;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.internal.SQLConf;

/**
 * What one query has asked, and how long it may still wait.
 *
 * Spark applies the rule to a query several times, and to each of its subqueries by itself.
 * They are one query here, as they have one tracker: no question is asked twice, and the
 * limit of time is one for all of them. What is remembered here decides about no file after
 * the query: file indexes are made anew whenever the rule is applied.
 */
class Query {
  static final String TIME_LIMIT = "skipindex.timeLimit";
  private static final double DEFAULT_SECONDS = 10.0;
  private static final Map<QueryPlanningTracker, Query> OF = Collections.synchronizedMap(
      new WeakHashMap<>());

  /** Seconds that the query waits at most, over all questions. */
  final double seconds;

  private final boolean isTracked;
  private final Map<Object, Object> found = new HashMap<>();
  private final List<FileIndex> listings = new ArrayList<>();

  /** Nanoseconds in which threads of the query waited, before those that wait now. */
  private long waited;

  /** Threads that wait, and since when at least one does. */
  private int waiters;

  private long since;

  private Query(double seconds, boolean isTracked) {
    this.seconds = seconds;
    this.isTracked = isTracked;
  }

  /** The query that this thread plans. */
  static Query current() {
    var tracker = QueryPlanningTracker.get();
    if (tracker.isEmpty()) return new Query(limit(), false);
    return OF.computeIfAbsent(tracker.get(), any -> new Query(limit(), true));
  }

  private static double limit() {
    String text = SQLConf.get().getConfString(TIME_LIMIT, "");
    if (text.isEmpty()) return DEFAULT_SECONDS;
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException problem) {
      throw new IllegalArgumentException(
          TIME_LIMIT + " is '" + text + "' (accepted: a number of seconds)");
    }
  }

  /** Nanoseconds that the query may still wait; 0 or less if it may not. */
  synchronized long left() {
    long now = waiters > 0 ? System.nanoTime() - since : 0L;
    return (long) (seconds * 1e9) - waited - now;
  }

  /** A thread begins to wait; several, as those of subqueries, wait in the same time. */
  synchronized void startWaiting() {
    if (waiters++ == 0) since = System.nanoTime();
  }

  synchronized void stopWaiting() {
    if (--waiters == 0) waited += System.nanoTime() - since;
  }

  /** Whether this is that query; those without a tracker are not told apart. */
  boolean isSame(Query other) {
    return this == other || !isTracked && !other.isTracked;
  }

  /**
   * A number for what Spark lists: two file indexes have one if they list the same files.
   *
   * They are equal for Spark if only their folders are the same.
   */
  synchronized int listing(FileIndex index) {
    for (int i = 0; i < listings.size(); i++) {
      FileIndex known = listings.get(i);
      if (known == index || known.equals(index) && hasSameFiles(known, index)) return i;
    }
    listings.add(index);
    return listings.size() - 1;
  }

  private static boolean hasSameFiles(FileIndex one, FileIndex other) {
    return one instanceof PartitioningAwareFileIndex left
        && other instanceof PartitioningAwareFileIndex right
        && left.allFiles().corresponds(right.allFiles(), Query::isSameFile);
  }

  private static boolean isSameFile(FileStatus one, FileStatus other) {
    return one.getPath().equals(other.getPath()) && one.getLen() == other.getLen()
        && one.getModificationTime() == other.getModificationTime();
  }

  /**
   * What is made, once, under a name that says all that it depends on.
   *
   * Null if that failed, and while it is being made.
   */
  @SuppressWarnings("unchecked") // one name has one type
  <T> T once(Object name, Callable<T> made) throws Exception {
    synchronized (this) {
      if (found.containsKey(name)) return (T) found.get(name);
      found.put(name, null);
    }
    T one = made.call();
    put(name, one);
    return one;
  }

  /** What was put under a name; null if nothing was. */
  synchronized Object get(Object name) {
    return found.get(name);
  }

  synchronized void put(Object name, Object value) {
    found.put(name, value);
  }
}
