package skipindex;

import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
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

  private static final ThreadFactory FACTORY = new ThreadFactory() {
    @Override
    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, "skipindex");
      thread.setDaemon(true);
      return thread;
    }
  };

  /** Threads do not end: Py4J has a socket for each, also when it has ended. */
  private static final ExecutorService CALLING = new ThreadPoolExecutor(
      0, Integer.MAX_VALUE, Long.MAX_VALUE, TimeUnit.NANOSECONDS, new SynchronousQueue<Runnable>(),
      FACTORY);

  private static final ExecutorService TELLING = Executors.newFixedThreadPool(1, FACTORY);

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
     */
    void enter(Query query) throws InterruptedException, Busy {
      if (permits.tryAcquire(0L, TimeUnit.NANOSECONDS)) return; // after those that wait
      if (query == null || query.seconds <= inVain) {
        throw new Busy(
            "the planner is busy with other questions about " + of
            + ", and a query waited for it in vain");
      }
      long nanos = query.left();
      if (permits.tryAcquire(Math.max(nanos, 0L), TimeUnit.NANOSECONDS)) return;
      // A query that had little time left says nothing of others.
      if (nanos * 2.0 >= query.seconds * 1e9) inVain = Math.max(inVain, query.seconds);
      throw new Busy(
          "the planner was busy with other questions about " + of + " for all that was left of "
          + query.seconds + " s (" + Query.TIME_LIMIT + ")");
    }

    void leave() {
      permits.release();
      inVain = 0.0;
    }
  }

  /** A call cannot begin: its table or its store has too many others. */
  static class Busy extends Exception {
    private static final long serialVersionUID = 1L;

    Busy(String why) {
      super(why);
    }
  }

  /** A call that begins at once; it leaves its gates when it has ended. */
  static class Call implements Runnable {
    final FutureTask<Object> result;
    private final Gate table;
    private final Gate store;
    private volatile long start;

    Call(final Function<String, Object> function, final Text text, Gate table, Gate store) {
      this.result = new FutureTask<>(new Callable<Object>() {
        @Override
        public Object call() {
          return Pieces.call(function, text.now());
        }
      });
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

  /** What a call tells Python. */
  static class Text {
    private final String line;
    private final String argument;
    private final long start = System.nanoTime();

    /**
     * line: to which the seconds are added that the call waits to begin; null is no line.
     */
    Text(String line, String argument) {
      this.line = line;
      this.argument = argument;
    }

    String now() {
      if (line == null) return argument;
      return line + " " + (System.nanoTime() - start) / 1e9 + "\n" + argument;
    }
  }

  /** Begins a call for a query, which waits for room; without a query there is no waiting. */
  static Call now(Function<String, Object> function, Text text, Path root, Query query)
      throws InterruptedException, Busy {
    Gate table = gate(root, MAX_OF_TABLE, "the table");
    Gate store = gate(Roots.store(root.toUri()), MAX_OF_STORE, "tables of its store");
    table.enter(query);
    boolean isIn = false;
    try {
      store.enter(query);
      isIn = true;
    } finally {
      if (!isIn) table.leave();
    }
    Call call = new Call(function, text, table, store);
    boolean begins = false;
    try {
      CALLING.execute(call);
      begins = true;
    } finally {
      if (!begins) call.leave(); // the process may have no more threads
    }
    return call;
  }

  /** A call for which no query waits yet; null if it cannot begin at once. */
  static Call ahead(Function<String, Object> function, Text text, Path root) {
    try {
      return now(function, text, root, null);
    } catch (Busy busy) {
      return null;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt(); // Spark looks at it
      return null;
    }
  }

  private static Gate gate(Object key, int permits, String of) {
    Gate known = GATES.get(key);
    if (known != null) return known;
    if (GATES.size() >= Roots.MAX_REMEMBERED) GATES.clear();
    Gate gate = new Gate(permits, of);
    Gate other = GATES.putIfAbsent(key, gate);
    return other == null ? gate : other;
  }

  /** Tells Python something; no query waits for it. */
  static void tell(final Function<String, Object> function, final String argument) {
    TELLING.submit(new Callable<Object>() {
      @Override
      public Object call() {
        return Pieces.call(function, argument);
      }
    });
  }

  /** Waits until Python is told of all that happened before; not for long. */
  static void finishTelling() {
    try {
      TELLING
          .submit(new Callable<Object>() {
            @Override
            public Object call() {
              return null;
            }
          })
          .get(1L, TimeUnit.SECONDS);
    } catch (Exception late) {
      // Python is told of it later.
    }
  }
}
