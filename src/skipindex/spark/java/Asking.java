package skipindex;

import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;

/**
 * The threads that call Python.
 *
 * No call waits for a thread. What limits calls are the gate of their table and that of its
 * store, so those about a table or a store that hangs leave room for others.
 */
class Asking {
  /** Calls about one table that run at once; one that was given up counts until it returns. */
  static final int MAX_OF_TABLE = 8;

  /** Three tables that hang do not close the gate of their store. */
  static final int MAX_OF_STORE = 32;

  private static final ThreadFactory FACTORY = work -> {
    var thread = new Thread(work, "skipindex");
    thread.setDaemon(true);
    return thread;
  };

  /** Threads do not end: Py4J has a socket for each, also when it has ended. */
  private static final ExecutorService CALLING = new ThreadPoolExecutor(
      0, Integer.MAX_VALUE, Long.MAX_VALUE, TimeUnit.NANOSECONDS, new SynchronousQueue<>(),
      FACTORY);

  /** Of a piece; Py4J may write a character of a question as two bytes; all are ASCII. */
  private static final int LENGTH = 4000;

  private static final AtomicLong TEXTS = new AtomicLong();
  private static final int MAX_UNTOLD = 1000;
  private static final ThreadPoolExecutor TELLING = new ThreadPoolExecutor(
      1, 1, 0L, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), FACTORY);

  /** By the path of a table, and by the name of a store. */
  private static final ConcurrentHashMap<Object, Gate> GATES = new ConcurrentHashMap<>();

  /** What lets a limited number of calls begin. */
  static class Gate {
    private final Semaphore permits;
    private final String of;

    /** The longest limit in seconds of a query that waited here in vain, since a call ended. */
    private volatile double inVain;

    Gate(int permits, String of) {
      this.permits = new Semaphore(permits, true);
      this.of = of;
    }

    /**
     * Lets a call begin.
     *
     * A query waits for that, unless another with no shorter limit did so in vain.
     *
     * query: null if none waits.
     * Throws TimeoutException: there are too many others.
     */
    void enter(Query query) throws InterruptedException, TimeoutException {
      if (permits.tryAcquire(0L, TimeUnit.NANOSECONDS)) return; // after those that wait
      if (query == null || query.seconds <= inVain) {
        throw new TimeoutException(
            "the planner is busy with other requests for " + of
            + ", and another query has waited without success");
      }
      long nanos = query.left();
      if (permits.tryAcquire(Math.max(nanos, 0L), TimeUnit.NANOSECONDS)) return;
      // A query that had little time left says nothing of others.
      if (nanos * 2.0 >= query.seconds * 1e9) inVain = Math.max(inVain, query.seconds);
      throw new TimeoutException(
          "the planner was busy with other requests for " + of + " until the time limit of "
          + query.seconds + " s (" + Query.TIME_LIMIT + ")");
    }

    void leave() {
      permits.release();
      inVain = 0.0;
    }
  }

  /** A call that begins at once; it leaves its gates when it has ended. */
  static class Call implements Runnable {
    final FutureTask<Object> result;
    private final Gate table;
    private final Gate store;
    private volatile long start;

    Call(Callable<Object> asked, Gate table, Gate store) {
      this.result = new FutureTask<>(asked);
      this.table = table;
      this.store = store;
    }

    @Override
    public void run() {
      start = System.nanoTime();
      try {
        result.run(); // nothing, if it was cancelled before
      } finally {
        leave();
      }
    }

    /** Nanoseconds since it began; 0 if it did not. */
    long age() {
      return start == 0L ? 0L : System.nanoTime() - start;
    }

    private void leave() {
      store.leave();
      table.leave();
    }
  }

  /** What Python is given: a line, to which the seconds since a start are added, and a text. */
  private static Object call(
      Function<String, Object> function, String line, String argument, long start) {
    String age = " " + (System.nanoTime() - start) / 1e9 + "\n";
    return call(function, line + age + argument);
  }

  /**
   * The function's result for a text, which it gets in pieces: Py4J writes 8192 bytes at a time.
   *
   * TCP holds the rest of a longer text back until the other end acknowledges the first part,
   * which it does after 40 ms (Nagle's algorithm, and delayed acknowledgement). A piece starts
   * with a line that names its text, tells how many came before, and whether more follow.
   */
  private static Object call(Function<String, Object> function, String text) {
    long name = TEXTS.incrementAndGet();
    for (int before = 0;; before++) {
      int start = before * LENGTH;
      int end = Math.min(start + LENGTH, text.length());
      boolean isLast = end == text.length();
      String line = name + " " + before + (isLast ? " last\n" : " more\n");
      Object found = function.apply(line + text.substring(start, end));
      if (isLast) return found;
    }
  }

  /** Begins a call for a query, which waits for room; without a query there is no waiting. */
  static Call now(
      Function<String, Object> function, String line, String argument, Path root, Query query)
      throws InterruptedException, TimeoutException {
    long asked = System.nanoTime();
    Gate table = gate(root, MAX_OF_TABLE, "the table");
    Gate store = gate(Roots.store(root.toUri()), MAX_OF_STORE, "tables of its store");
    table.enter(query);
    try {
      store.enter(query);
    } catch (Throwable problem) {
      table.leave();
      throw problem;
    }
    var call = new Call(() -> call(function, line, argument, asked), table, store);
    try {
      CALLING.execute(call);
    } catch (Throwable problem) { // the process may have no more threads
      call.leave();
      throw problem;
    }
    return call;
  }

  /** A call for which no query waits yet; null if it cannot begin at once. */
  static Call ahead(Function<String, Object> function, String line, String argument, Path root) {
    try {
      return now(function, line, argument, root, null);
    } catch (TimeoutException busy) {
      return null;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt(); // Spark looks at it
      return null;
    }
  }

  private static Gate gate(Object key, int permits, String of) {
    if (GATES.size() >= Roots.MAX_REMEMBERED && !GATES.containsKey(key)) GATES.clear();
    return GATES.computeIfAbsent(key, any -> new Gate(permits, of));
  }

  /** Tells Python something; no query waits for it. */
  static void tell(Function<String, Object> function, String line, String argument) {
    TELLING.submit(() -> call(function, line, argument, System.nanoTime()));
  }

  /** Whether Python is told of so much already that what may be lost should be. */
  static boolean isBehind() {
    return TELLING.getQueue().size() > MAX_UNTOLD;
  }

  /** Waits until Python is told of all that happened before; not for long. */
  static void finishTelling() {
    try {
      TELLING.submit(() -> {}).get(1L, TimeUnit.SECONDS);
    } catch (Exception late) {
      // Python is told of it later.
    }
  }
}
