package skipindex;

import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/**
 * The size of the files that remain under a condition, which Spark plans joins by.
 *
 * It holds which files these are, as the size has to be right when the files are listed.
 *
 * answer: the files that do not count; null if all do.
 */
record Size(long bytes, Listing.Earlier answer) {
  static final String ENABLED = "skipindex.estimates";

  /** As a query asks for it first; null if it is not known. */
  static Size of(Scanned scanned, Seq<Expression> condition, Query query) {
    String asked = scanned.question(Json.array(), condition);
    String name = "size " + query.listing(scanned.base()) + "\n" + asked;
    try {
      return query.once(name, () -> asked(scanned, condition, query));
    } catch (Throwable problem) {
      scanned.planner().report(problem);
      return null;
    }
  }

  private static Size asked(Scanned scanned, Seq<Expression> condition, Query query) {
    var all = Scanned.listed(scanned.base(), condition);
    var rest = scanned.left("estimate", Json.array(), condition, null, all, query);
    long total = scanned.base().sizeInBytes();
    if (rest.answer().isNone()) return new Size(total, null);
    long bytes = Math.min(rest.bytes(), total);
    return new Size(Math.max(1L, bytes), new Listing.Earlier(rest.answer()));
  }
}
