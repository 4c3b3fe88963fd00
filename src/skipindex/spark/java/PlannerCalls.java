package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * The planner, which runs in Python: what it is asked, and which files it rules out.
 *
 * Whatever goes wrong here, no file is ruled out. A query waits no longer than its limit of
 * time for all its questions, and a table whose planning took longer is left alone for a while.
 */
public class PlannerCalls {
  static final String ENABLED = "skipindex.enabled";
  private static final AtomicLong QUESTIONS = new AtomicLong();

  private final Function<String, Object> python;
  final Roots roots;
  final String[] settings;
  private final ConcurrentHashMap<Path, Listing> listings = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<Path, Rest> resting = new ConcurrentHashMap<>();

  /** Until when a table is left alone in milliseconds, and the limit in seconds. */
  private record Rest(long until, double seconds) {}

  /** Whether files are skipped at all, in queries that are defined already too. */
  volatile boolean isOn = true;

  /** Milliseconds for which it counts that nothing is ruled out. */
  public volatile long aheadMillis = 10000L;

  /** Milliseconds for which a table is left alone after its planning took too long. */
  public volatile long restMillis = 30000L;

  /**
   * python: a question, after a line that says what it is for, its number, how many seconds
   *     it has, and for how many it waited to be asked, to the number of a listing (8 bytes)
   *     and one bit for each of its files, set if the file is ruled out; or to null, where
   *     none is; or to no byte, where it has no answer. For partitions it is what
   *     Partitions reads, and for the number of a listing what Listing reads. It is also told
   *     what scans read, and why questions have no answer.
   * indexFolder: the name of the folder that makes a folder a table.
   * settings: names of the settings that each question tells the planner, by lines.
   */
  PlannerCalls(Function<String, Object> python, String indexFolder, String settings) {
    this.python = python;
    this.roots = new Roots(indexFolder);
    this.settings = settings.split("\n");
  }

  public void register(String root) {
    roots.register(new Path(root));
  }

  /** How often a store was asked for an index folder. */
  public int lookups() {
    return roots.lookups;
  }

  boolean isEnabled() {
    return isOn && isSet(ENABLED);
  }

  /** Whether the planner is asked what it would skip, and nothing is skipped. */
  boolean isObserving() {
    return isOn && "observe".equalsIgnoreCase(SQLConf.get().getConfString(ENABLED, "true"));
  }

  /** Whether a switch of the session is on, as it is by default. */
  static boolean isSet(String name) {
    return "true".equalsIgnoreCase(SQLConf.get().getConfString(name, "true"));
  }

  /** A question has no answer, and the planner is told so, or said so. */
  static class NoAnswer extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NoAnswer(String why) {
      super(why);
    }
  }

  /**
   * A question that is asked while Spark goes on planning.
   *
   * call: null if there was no room for it.
   * end: until when the answer counts, in nanoseconds.
   */
  record
      Ahead(PlannerCalls planner, Query query, Path root, long number, Asking.Call call, long end) {
    boolean isOver() {
      return System.nanoTime() - end > 0L;
    }

    /**
     * Whether the answer is that no file is ruled out.
     *
     * Any other answer is asked for again, as files may have changed since.
     */
    boolean rulesOutNothing() {
      if (call == null || isOver()) return false;
      try {
        return planner.result(call, query, root, number) == null;
      } catch (IllegalStateException problem) {
        return false; // it is met again when the question is asked now
      }
    }

    /** The answer, which is awaited; throws NoAnswer if there is none. */
    Listing.Answer answer() {
      if (call == null) throw new NoAnswer("the planner is busy");
      return planner.answer(number, planner.result(call, query, root, number), query, root);
    }
  }

  /** Lets the planner record what would be skipped; no query waits for it. */
  boolean observe(String question, Query query) {
    if (Asking.isBehind()) return false;
    Asking.tell(python, line("observe", 0L, query.seconds), question);
    return true;
  }

  /** purpose: "ahead", or "rows", whose answer may be rows. */
  Ahead askAhead(String purpose, String question, Query query, Path root) {
    long number = QUESTIONS.incrementAndGet();
    String line = line(purpose, number, query.seconds);
    long end = System.nanoTime() + aheadMillis * 1000000L;
    var call = Asking.ahead(python, line, question, root);
    return new Ahead(this, query, root, number, call, end);
  }

  private static String line(String purpose, long number, double seconds) {
    return purpose + " " + number + " " + seconds;
  }

  /** number: of the question that the call is for; 0 if it has none. */
  private byte[] call(String purpose, String argument, Query query, Path root, long number) {
    String line = line(purpose, number, query.left() / 1e9);
    if (query.left() <= 0L) {
      String limit = Query.TIME_LIMIT + " is " + query.seconds + " s";
      throw noAnswer(root, number, "the query has no time left for a plan (" + limit + ")");
    }
    query.startWaiting();
    try {
      return result(Asking.now(python, line, argument, root, query), query, root, number);
    } catch (InterruptedException stopped) {
      throw stopped(stopped);
    } catch (TimeoutException busy) {
      throw noAnswer(root, number, busy.getMessage());
    } finally {
      query.stopWaiting();
    }
  }

  private byte[] result(Asking.Call call, Query query, Path root, long number) {
    long nanos = query.left();
    query.startWaiting();
    try {
      return (byte[]) call.result.get(Math.max(nanos, 0L), TimeUnit.NANOSECONDS);
    } catch (TimeoutException late) {
      call.result.cancel(false);
      long age = call.age();
      String why = "planning took more than " + query.seconds + " s (" + Query.TIME_LIMIT + ")";
      // A question that waited for its gates says nothing of its own table.
      if (age * 2L >= query.seconds * 1e9) {
        resting.put(root, new Rest(System.currentTimeMillis() + restMillis, query.seconds));
        why += ", so queries of the table read all files for " + restMillis / 1000L + " s";
      }
      throw noAnswer(root, number, why);
    } catch (InterruptedException stopped) {
      throw stopped(stopped);
    } catch (ExecutionException failed) {
      throw new IllegalStateException(failed.getCause());
    } finally {
      query.stopWaiting();
    }
  }

  private static IllegalStateException stopped(InterruptedException stopped) {
    Thread.currentThread().interrupt(); // Spark looks at it
    return new IllegalStateException(stopped);
  }

  /**
   * Whether a query leaves a table alone; what reads all of it is told then.
   *
   * A query that may wait longer than those before asks all the same.
   */
  boolean isResting(Path root, Query query, boolean tells) {
    Rest known = resting.get(root);
    if (known == null || known.seconds < query.seconds) return false;
    if (known.until < System.currentTimeMillis()) {
      resting.remove(root);
      return false;
    }
    if (tells) noAnswer(root, 0L, "all files of the table are read, as planning took too long");
    return true;
  }

  /** Tells the planner why a scan reads all files, whatever answer the question has later. */
  private NoAnswer noAnswer(Path root, long number, String why) {
    tell(Question.place(root).put("number", number).put("problem", why));
    return new NoAnswer(why);
  }

  /**
   * The answer to a question.
   *
   * purpose: "read", or "estimate" where only the size of what remains is asked for.
   * Throws NoAnswer: there is none.
   */
  Listing.Answer ask(String purpose, String question, Query query, Path root) {
    if (isResting(root, query, !purpose.equals("estimate"))) throw new NoAnswer("left alone");
    long number = QUESTIONS.incrementAndGet();
    return answer(number, call(purpose, question, query, root, number), query, root);
  }

  private Listing.Answer answer(long number, byte[] bits, Query query, Path root) {
    if (bits != null && bits.length == 0) throw new NoAnswer("the planner has none");
    Listing listing = bits == null ? null : listing(bits, query, root, number);
    return new Listing.Answer(number, listing, bits, root);
  }

  /** Which folders of a question a scan needs, as Partitions reads it; null is all. */
  byte[] partitions(String question, Query query, Path root) {
    if (isResting(root, query, true)) return null;
    byte[] found = call("partitions", question, query, root, 0L);
    return found == null || found.length == 0 ? null : found;
  }

  /** Of each table the newest listing alone is remembered. */
  private Listing listing(byte[] bits, Query query, Path root, long asked) {
    long number = ByteBuffer.wrap(bits).order(ByteOrder.LITTLE_ENDIAN).getLong();
    Listing known = listings.get(root);
    if (known != null && known.number == number) return known;
    byte[] packed = call("files", Long.toString(number), query, root, asked);
    if (packed == null || packed.length == 0) throw new NoAnswer("the planner has no listing");
    var listing = new Listing(number, packed);
    if (listings.size() >= Roots.MAX_REMEMBERED) listings.clear();
    listings.put(root, listing);
    return listing;
  }

  /** Tells what a scan reads, by what tells it apart; no query waits for it. */
  void tell(int scan, Listing.Rest rest) {
    tell(Json.object()
             .put("number", rest.answer().number)
             .put("scan", scan)
             .put("listed", rest.listed())
             .put("read", rest.read())
             .put("unknown", rest.unknown()));
  }

  /** Tells that a scan reads a folder which is no table, or more than one. */
  void tellUnknown(FileIndex location) {
    scala.collection.Seq<Path> paths = location.rootPaths();
    if (paths.isEmpty()) return;
    tell(Question.place(paths.head()).put("scan", System.identityHashCode(location)));
  }

  void report(Throwable problem) {
    if (problem instanceof NoAnswer) return; // the planner knows
    tell(Json.object().put("problem", problem.toString()));
  }

  private void tell(ObjectNode object) {
    Asking.tell(python, line("told", 0L, 0.0), Json.text(object));
  }

  /** Waits until Python is told of all that happened before; not for long. */
  public void finishTelling() {
    Asking.finishTelling();
  }
}
