package skipindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The planner, which runs in Python: what it is asked, and which files it rules out.
 *
 * Whatever goes wrong here, no file is ruled out.
 */
public class PlannerCalls {
    static final String ENABLED = "skipindex.enabled";
    static final long MEMORY_MS = 30000L;

    /** Those that call Python: Py4J has a socket for each thread, also when it has ended. */
    private static final ExecutorService THREADS =
        Executors.newFixedThreadPool(8, new ThreadFactory() {
            public Thread newThread(Runnable work) {
                Thread thread = new Thread(work, "skipindex");
                thread.setDaemon(true);
                return thread;
            }
        });

    final Function plan;
    final Function files;
    final Function usesOf;
    final Function failed;
    final String indexFolder;
    final String[] settings;
    final ConcurrentHashMap listings = new ConcurrentHashMap();
    final ConcurrentHashMap registered = new ConcurrentHashMap();
    final ConcurrentHashMap elsewhere = new ConcurrentHashMap();
    volatile boolean isOn = true;
    /** Milliseconds for which it counts that nothing is ruled out. */
    public volatile long aheadMillis = 10000L;

    /**
     * plan: a question, after a line that says what it is for, to the number of a listing
     *     (8 bytes) and one bit for each of its files, set if the file is ruled out; or to
     *     null, where none is. Asked for listing 0, it gives the number alone.
     * files: the number of a listing, as text, to its files.
     * usesOf: a folder, a column and the side that it is joined with, as JSON, to letters
     *     that say what leaves out files; or to null, if nothing does.
     * failed: told why a question could not be asked.
     * indexFolder: the name of the folder that makes a folder a table.
     * settings: names of the settings that each question tells the planner, by lines.
     */
    PlannerCalls(
            Function plan,
            Function files,
            Function usesOf,
            Function failed,
            String indexFolder,
            String settings) {
        this.plan = plan;
        this.files = files;
        this.usesOf = usesOf;
        this.failed = failed;
        this.indexFolder = indexFolder;
        this.settings = settings.split("\n");
    }

    public void register(String root) {
        registered.put(new Path(root).toUri().getPath(), Boolean.TRUE);
    }

    /** Whether files are skipped at all, in queries that are defined already too. */
    public void setOn(boolean isOn) {
        this.isOn = isOn;
    }

    boolean isEnabled() {
        return isOn && "true".equalsIgnoreCase(SQLConf.get().getConfString(ENABLED, "true"));
    }

    /** A question that is asked while Spark goes on planning. */
    static class Ahead {
        private final String question;
        private final Future bits;
        private final long end;

        Ahead(String question, Future bits, long millis) {
            this.question = question;
            this.bits = bits;
            this.end = System.nanoTime() + millis * 1000000L;
        }

        /**
         * Whether the answer to this question is that no file is ruled out.
         *
         * Any other answer is asked for again, as files may have changed since.
         */
        boolean rulesOutNothing(String asked) {
            if (!asked.equals(question) || System.nanoTime() - end > 0L) return false;
            try {
                return result(bits) == null;
            } catch (RuntimeException problem) {
                return false; // it is met again when the question is asked now
            }
        }
    }

    Ahead askAhead(String question) {
        return new Ahead(question, later(plan, "ahead\n" + question), aheadMillis);
    }

    private static Future later(final Function function, final String argument) {
        return THREADS.submit(new Callable() {
            public Object call() {
                return Pieces.call(function, argument);
            }
        });
    }

    private static byte[] call(Function function, String argument) {
        return result(later(function, argument));
    }

    private static byte[] result(Future future) {
        try {
            return (byte[]) future.get();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt(); // Spark looks at it
            throw new IllegalStateException(stopped);
        } catch (ExecutionException failed) {
            throw new IllegalStateException(failed.getCause());
        }
    }

    /**
     * The answer to a question; null if no file is ruled out.
     *
     * purpose: "read", or "estimate" where only the size of what remains is asked for.
     */
    Listing.Answer ask(String purpose, String question, Path root) {
        try {
            byte[] bits = call(plan, purpose + "\n" + question);
            if (bits == null) return null;
            long number = ByteBuffer.wrap(bits).order(ByteOrder.LITTLE_ENDIAN).getLong();
            return new Listing.Answer(listing(root.toString(), number), bits, root);
        } catch (Throwable problem) {
            report(problem);
            return null;
        }
    }

    /**
     * The members of a question that name a listing of the planner's, and its files that
     * Spark lists too: once, and with the same size and time. Null if there is no listing.
     *
     * question: the one to which the planner answers with the number of a listing alone.
     */
    String listed(String question, Path root, SEQ directories) {
        byte[] told = call(plan, "read\n" + question);
        if (told == null) return null;
        long number = ByteBuffer.wrap(told).order(ByteOrder.LITTLE_ENDIAN).getLong();
        byte[] seen = listing(root.toString(), number).seen(root, directories);
        StringBuilder text = new StringBuilder(",\"listing\":").append(number);
        text.append(",\"listed\":\"");
        for (int k = 0; k < seen.length; k++) text.append(seen[k] == 1 ? '1' : '0');
        return text.append('"').toString();
    }

    /** Of each table the newest listing alone is remembered. */
    private Listing listing(String root, long number) {
        Object[] known = (Object[]) listings.get(root);
        if (known != null && ((Long) known[0]).longValue() == number) return (Listing) known[1];
        Listing listing = new Listing(call(files, Long.toString(number)));
        listings.put(root, new Object[] {Long.valueOf(number), listing});
        return listing;
    }

    void report(Throwable problem) {
        try {
            call(failed, problem.toString());
        } catch (Throwable gone) {
            // Python has ended, or is about to: no file is ruled out any more.
        }
    }

    /**
     * The table that a path of a scan lies in: registered, or with an index folder.
     *
     * A path is that of the table, or of a partition or a file in it.
     */
    Path tableOf(Path scanned, Configuration conf) throws java.io.IOException {
        for (Path path = scanned; path != null; path = path.getParent()) {
            if (registered.containsKey(path.toUri().getPath()) || hasIndexes(path, conf)) return path;
            boolean isInside = path.getName().indexOf('=') > 0 || path == scanned && isFile(path);
            if (!isInside) return null;
        }
        return null;
    }

    private static boolean isFile(Path path) {
        return path.getName().indexOf('.') > 0;
    }

    /** A store is asked again after a while, a local file system always. */
    private boolean hasIndexes(Path path, Configuration conf) throws java.io.IOException {
        String scheme = path.toUri().getScheme();
        if (scheme == null || scheme.equals("file")) {
            return new java.io.File(path.toUri().getPath(), indexFolder).isDirectory();
        }
        Object[] known = (Object[]) elsewhere.get(path);
        long now = System.currentTimeMillis();
        if (known == null || now - ((Long) known[0]).longValue() > MEMORY_MS) {
            boolean there = path.getFileSystem(conf).exists(new Path(path, indexFolder));
            known = new Object[] {Long.valueOf(now), Boolean.valueOf(there)};
            elsewhere.put(path, known);
        }
        return ((Boolean) known[1]).booleanValue();
    }

    /**
     * What of the other side of a join can leave out files: "k" for the keys that it leaves,
     * "a" for its conditions, "ak" for both, and nothing.
     */
    String usesOf(Path root, JoinKeys join) {
        StringBuilder text = Question.place(root);
        text.append(",\"column\":");
        Question.quote(text, join.column);
        text.append(",\"dimension\":").append(join.dimension);
        byte[] uses = call(usesOf, text.append('}').toString());
        return uses == null ? "" : new String(uses, StandardCharsets.US_ASCII);
    }
}
