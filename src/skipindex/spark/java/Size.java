package skipindex;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/**
 * The size of the files that remain under a condition, which Spark plans joins by.
 *
 * It holds which files these are, as the size has to be right when the files are listed.
 */
class Size {
  static final String ENABLED = "skipindex.estimates";

  final long bytes;

  /** The files that do not count; null if all do. */
  final Listing.Earlier answer;

  private Size(long bytes, Listing.Earlier answer) {
    this.bytes = bytes;
    this.answer = answer;
  }

  /** As a query asks for it first; null if it is not known. */
  static Size of(Scanned scanned, Seq<Expression> condition, Query query) {
    String asked = scanned.question(Json.array(), condition);
    String name = "size " + query.listing(scanned.base) + "\n" + asked;
    Object known = query.get(name);
    if (known == null) {
      known = "unknown";
      try {
        known = asked(scanned, condition, query);
      } catch (Throwable problem) {
        scanned.planner.report(problem);
      }
      query.put(name, known);
    }
    return known instanceof Size ? (Size) known : null;
  }

  private static Size asked(Scanned scanned, Seq<Expression> condition, Query query) {
    Seq<PartitionDirectory> all = Scala.kept(
        scanned.base.listFiles(Scala.<Expression>none(), condition));
    PlannerCalls.Numbered found = scanned.left(
        "estimate", Json.array(), condition, null, all, query);
    long whole = scanned.base.sizeInBytes();
    if (found.answer == null) return new Size(whole, null);
    long bytes = Math.min(found.rest.bytes, whole);
    return new Size(Math.max(1L, bytes), new Listing.Earlier(found.answer));
  }
}
