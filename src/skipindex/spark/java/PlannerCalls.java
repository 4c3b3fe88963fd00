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

  final Function<String, Object> plan;
  final Function<String, Object> files;
  final Function<String, Object> told;
  final Roots roots;
  final String[] settings;
  private final ConcurrentHashMap<Path, Known> listings = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<Path, Rest> resting = new ConcurrentHashMap<>();

  /** A listing, by its number. */
  private record Known(long number, Listing listing) {}

  /** Until when a table is left alone in milliseconds, and the limit in seconds. */
  private record Rest(long until, double seconds) {}

  /** Whether files are skipped at all, in queries that are defined already too. */
  volatile boolean isOn = true;

  /** Milliseconds for which it counts that nothing is ruled out. */
  public volatile long aheadMillis = 10000L;

  /** Milliseconds for which a table is left alone after its planning took too long. */
  public volatile long restMillis = 30000L;

  /**
   * plan: a question, after a line that says what it is for, its number, how many seconds
   *     it has, and for how many it waited to be asked, to the number of a listing (8 bytes)
   *     and one bit for each of its files, set if the file is ruled out; or to null, where
   *     none is; or to no byte, where it has no answer. Asked for listing 0, it gives the
   *     number alone; asked for partitions, what Partitions reads.
   * files: the number of a listing, as text, to its files.
   * told: what a scan reads, or why a question has no answer, as JSON.
   * indexFolder: the name of the folder that makes a folder a table.
   * settings: names of the settings that each question tells the planner, by lines.
   */
  PlannerCalls(
      Function<String, Object> plan, Function<String, Object> files, Function<String, Object> told,
      String indexFolder, String settings) {
    this.plan = plan;
    this.files = files;
    this.told = told;
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
  record Ahead(long number, Asking.Call call, long end) {
    boolean isOver() {
      return System.nanoTime() - end > 0L;
    }

    /**
     * Whether the answer is that no file is ruled out.
     *
     * Any other answer is asked for again, as files may have changed since.
     */
    boolean rulesOutNothing(PlannerCalls planner, Query query, Path root) {
      if (call == null || isOver()) return false;
      try {
        return planner.result(call, query, root, number) == null;
      } catch (IllegalStateException problem) {
        return false; // it is met again when the question is asked now
      }
    }

    /** The answer, which is awaited; throws NoAnswer if there is none. */
    Numbered answer(PlannerCalls planner, Query query, Path root) {
      if (call == null) throw new NoAnswer("the planner is busy");
      return planner.numbered(number, planner.result(call, query, root, number), query, root);
    }
  }

  /** Lets the planner record what would be skipped; no query waits for it. */
  void observe(String question, Query query) {
    if (Asking.isBehind()) return;
    Asking.tell(plan, text("observe", 0L, query.seconds, question).now());
  }

  /** purpose: "ahead", or "rows", whose answer may be rows. */
  Ahead askAhead(String purpose, String question, Query query, Path root) {
    long number = QUESTIONS.incrementAndGet();
    Asking.Text text = text(purpose, number, query.seconds, question);
    long end = System.nanoTime() + aheadMillis * 1000000L;
    return new Ahead(number, Asking.ahead(plan, text, root), end);
  }

  private static Asking.Text text(String purpose, long number, double seconds, String question) {
    return new Asking.Text(purpose + " " + number + " " + seconds, question);
  }

  /** number: of the question that the call is for; 0 if it has none. */
  private byte[] call(
      Function<String, Object> function, Asking.Text text, Query query, Path root, long number) {
    if (query.left() <= 0L) {
      String limit = Query.TIME_LIMIT + " is " + query.seconds + " s";
      throw noAnswer(root, number, "the query has no time left for a plan (" + limit + ")");
    }
    query.startWaiting();
    try {
      return result(Asking.now(function, text, root, query), query, root, number);
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
   * The answer to a question; null if no file is ruled out.
   *
   * purpose: "read", or "estimate" where only the size of what remains is asked for.
   * Throws NoAnswer: there is none.
   */
  Numbered ask(String purpose, String question, Query query, Path root) {
    if (isResting(root, query, !purpose.equals("estimate"))) throw new NoAnswer("left alone");
    long number = QUESTIONS.incrementAndGet();
    Asking.Text text = text(purpose, number, query.left() / 1e9, question);
    return numbered(number, call(plan, text, query, root, number), query, root);
  }

  private Numbered numbered(long number, byte[] bits, Query query, Path root) {
    if (bits == null) return new Numbered(number, null, null);
    if (bits.length == 0) throw new NoAnswer("the planner has none");
    Listing listing = listing(number(bits), query, root, number);
    return new Numbered(number, new Listing.Answer(listing, bits, root), null);
  }

  /** Which folders of a question a scan needs, as Partitions reads it; no byte is all. */
  byte[] partitions(String question, Query query, Path root) {
    if (isResting(root, query, true)) return new byte[0];
    Asking.Text text = text("partitions", 0L, query.left() / 1e9, question);
    byte[] found = call(plan, text, query, root, 0L);
    return found == null ? new byte[0] : found;
  }

  /**
   * An answer, null if no file is ruled out, and the number of its question.
   *
   * rest: what is left to read, once files are listed.
   */
  record Numbered(long number, Listing.Answer answer, Listing.Rest rest) {
    Numbered of(Seq<PartitionDirectory> all, Scanned scanned) {
      return new Numbered(number, answer, Listing.rest(answer, all, scanned));
    }
  }

  private static long number(byte[] told) {
    return ByteBuffer.wrap(told).order(ByteOrder.LITTLE_ENDIAN).getLong();
  }

  /**
   * Members of a question that name a listing of the planner's, and its files that
   * Spark lists too: once, and with the same size and time.
   *
   * question: the one to which the planner answers with the number of a listing alone.
   * Throws NoAnswer: there is no listing.
   */
  ObjectNode listed(String question, Seq<PartitionDirectory> directories, Query query, Path root) {
    if (isResting(root, query, true)) throw new NoAnswer("left alone");
    Asking.Text asked = text("read", 0L, query.left() / 1e9, question);
    byte[] told = call(plan, asked, query, root, 0L);
    if (told == null || told.length == 0) throw new NoAnswer("the planner has no listing");
    byte[] seen = listing(number(told), query, root, 0L).seen(root, directories);
    StringBuilder bits = new StringBuilder();
    for (byte times : seen) bits.append(times == 1 ? '1' : '0');
    return Json.object().put("listing", number(told)).put("listed", bits.toString());
  }

  /** Of each table the newest listing alone is remembered. */
  private Listing listing(long number, Query query, Path root, long asked) {
    Known known = listings.get(root);
    if (known != null && known.number == number) return known.listing;
    var text = new Asking.Text(null, Long.toString(number));
    var listing = new Listing(call(files, text, query, root, asked));
    if (listings.size() >= Roots.MAX_REMEMBERED) listings.clear();
    listings.put(root, new Known(number, listing));
    return listing;
  }

  /** Tells what a scan reads, by what tells it apart; no query waits for it. */
  void tell(long number, int scan, Listing.Rest rest) {
    tell(Json.object()
             .put("number", number)
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
    Asking.tell(told, Json.text(object));
  }

  /** Waits until Python is told of all that happened before; not for long. */
  public void finishTelling() {
    Asking.finishTelling();
  }
}
