package skipindex;

import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;

/**
 * The threads that call Python: Py4J has a socket for each thread, also when it has ended.
 *
 * A table whose store hangs takes some of the threads, and leaves the others to other tables.
 */
class Asking {
    /** Calls for one table that have not returned, also those that no query waits for. */
    static final int MAX_OF_TABLE = 3;
    private static final ExecutorService NOW = threads(8, "skipindex");
    private static final ExecutorService AHEAD = threads(4, "skipindex-ahead");
    private static final ExecutorService TELLING = threads(1, "skipindex-telling");
    /** By table, what lets a call begin. */
    private static final ConcurrentHashMap GATES = new ConcurrentHashMap();

    private static ExecutorService threads(int n, final String name) {
        return Executors.newFixedThreadPool(n, new ThreadFactory() {
            public Thread newThread(Runnable work) {
                Thread thread = new Thread(work, name);
                thread.setDaemon(true);
                return thread;
            }
        });
    }

    /** A call that waits for a thread, has begun, or never will. */
    static class Call implements Callable {
        private static final int WAITS = 0;
        private static final int RUNS = 1;
        private static final int NEVER = 2;

        Future result;
        private final Function function;
        private final String argument;
        private final Semaphore gate;
        private final AtomicInteger state = new AtomicInteger(WAITS);
        private volatile long start;

        Call(Function function, String argument, Semaphore gate) {
            this.function = function;
            this.argument = argument;
            this.gate = gate;
        }

        public Object call() {
            start = System.nanoTime();
            if (!state.compareAndSet(WAITS, RUNS)) return null;
            try {
                return Pieces.call(function, argument);
            } finally {
                if (gate != null) gate.release();
            }
        }

        /** Whether the call never begins, now that nobody waits for it. */
        boolean isGivenUp() {
            if (state.compareAndSet(WAITS, NEVER) && gate != null) gate.release();
            return state.get() == NEVER;
        }

        /** Nanoseconds since it began; 0 if it did not. */
        long age() {
            return state.get() == RUNS ? System.nanoTime() - start : 0L;
        }
    }

    /** A call for which a query waits; null if the table has too many others for so long. */
    static Call now(Function function, String argument, Path root, long nanos)
            throws InterruptedException {
        Semaphore gate = gate(root);
        if (!gate.tryAcquire(Math.max(nanos, 0L), TimeUnit.NANOSECONDS)) return null;
        return submitted(NOW, new Call(function, argument, gate));
    }

    /** A call for which a query waits only if it has begun by then. */
    static Call ahead(Function function, String argument) {
        return submitted(AHEAD, new Call(function, argument, null));
    }

    /** Tells Python something; no query waits for it. */
    static void tell(Function function, String argument) {
        submitted(TELLING, new Call(function, argument, null));
    }

    private static Call submitted(ExecutorService threads, Call call) {
        call.result = threads.submit(call);
        return call;
    }

    private static Semaphore gate(Path root) {
        if (GATES.size() >= Roots.MAX_REMEMBERED) GATES.clear();
        GATES.putIfAbsent(root, new Semaphore(MAX_OF_TABLE, true));
        Semaphore gate = (Semaphore) GATES.get(root);
        return gate == null ? new Semaphore(MAX_OF_TABLE) : gate; // just cleared
    }

    /** Waits until Python is told of all that happened before; not for long. */
    static void finishTelling() {
        try {
            TELLING.submit(new Callable() {
                public Object call() {
                    return null;
                }
            }).get(1L, TimeUnit.SECONDS);
        } catch (Exception late) {
            // Python is told of it later.
        }
    }
}
