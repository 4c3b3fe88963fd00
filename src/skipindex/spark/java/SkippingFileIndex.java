package skipindex;

import static java.util.stream.Collectors.toSet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.*;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/**
 * A file index of Spark's, without the files that hold no row which a plan needs.
 *
 * It lists what the other index lists. A file that the planner does not know, or knows with
 * another size or time, stays. What one plan needs of the scan is a value of its index, and
 * nothing is set later: the rule makes a new index whenever it is applied to a plan, as parts
 * of a plan may become those of another one.
 */
public class SkippingFileIndex extends Wrapping {
  final Scanned scanned;
  final Query query;

  /** The conjuncts of the condition right above the scan. */
  private final Seq<Expression> condition;

  /** Those that Spark does not pass on, as they have columns of files and of folders. */
  private final Seq<Expression> mixed;

  private final String mixedJson;

  /** The size of what remains under the condition; null if it was not asked for. */
  private final Size size;

  /** What columns need to have keys of. */
  private final List<Dimension> keys;

  /** The first rows of an order, which are enough; null if all are needed. */
  private final TopRows first;

  /** Files whose rows the plan has otherwise; null if there are none. */
  private final Listing.Covered covered;

  private SkippingFileIndex(
      Scanned scanned, Query query, Seq<Expression> condition, Size size, List<Dimension> keys,
      TopRows first, Listing.Covered covered) {
    super(scanned.base());
    this.scanned = scanned;
    this.query = query;
    this.condition = condition;
    this.size = size;
    this.keys = keys;
    this.first = first;
    this.covered = covered;
    this.mixed = Scala.listed(Scala.stream(condition).filter(scanned::isMixed).toList());
    this.mixedJson = mixed.isEmpty() ? "" : ExpressionJson.json(mixed);
  }

  static SkippingFileIndex of(Scanned scanned, Query query) {
    return new SkippingFileIndex(scanned, query, Scala.none(), null, List.of(), null, null);
  }

  /** The index for another plan, which has the same rows otherwise, and asks this planner. */
  SkippingFileIndex renewed(PlannerCalls planner, boolean takesRewritten, Query query) {
    var renewed = scanned.by(planner, takesRewritten);
    return new SkippingFileIndex(renewed, query, Scala.none(), null, List.of(), null, covered);
  }

  SkippingFileIndex withCondition(Seq<Expression> condition, boolean withSize) {
    boolean isSized = withSize && !condition.isEmpty() && covered == null && !scanned.isOfCatalog()
        && PlannerCalls.isSet(Size.ENABLED);
    Size size = isSized ? Size.of(scanned, condition, query) : null;
    return new SkippingFileIndex(scanned, query, condition, size, keys, first, covered);
  }

  SkippingFileIndex withKeys(List<Dimension> keys) {
    return new SkippingFileIndex(scanned, query, condition, size, keys, first, covered);
  }

  SkippingFileIndex withFirst(TopRows first) {
    return new SkippingFileIndex(scanned, query, condition, size, keys, first, covered);
  }

  SkippingFileIndex without(Listing.Covered covered) {
    return new SkippingFileIndex(scanned, query, condition, null, keys, first, covered);
  }

  /** Whether the other has the same condition too, beside what decides how Spark reads. */
  boolean isSame(SkippingFileIndex other) {
    return equals(other) && condition.equals(other.condition)
        && sizeInBytes() == other.sizeInBytes()
        && scanned.takesRewritten() == other.scanned.takesRewritten();
  }

  /** Whether files are left out by what the scan is joined with. */
  public boolean hasKeys() {
    return !keys.isEmpty();
  }

  /** Whether results over some files may be put into the plan. */
  boolean canBeAnswered() {
    return covered == null && keys.isEmpty() && !scanned.isOfCatalog()
        && !scanned.isDeclaredByCatalog();
  }

  @Override
  public Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    Seq<PartitionDirectory> all = Scala.kept(base.listFiles(partitionFilters, dataFilters));
    if (covered != null)
      return Listing.rest(covered, all, scanned).directories(); // with those without a match
    boolean asksAll = first == null || hasKeys();
    // A condition on folders leaves out nothing more, but the planner tells of the scan.
    boolean asksNothing = asksAll && partitionFilters.isEmpty() && dataFilters.isEmpty()
        && mixed.isEmpty() && !hasKeys();
    if (asksNothing || all.isEmpty()) return all;
    PlannerCalls planner = scanned.planner();
    try {
      if (planner.isEnabled()) {
        if (asksAll) return withMatches(all, partitionFilters, dataFilters);
        return told(scanned.ask(all, first.json(), first.conjuncts(), query));
      }
    } catch (Throwable problem) {
      planner.report(problem);
    }
    // Spark may have chosen to broadcast what remained when the query was optimized. Without
    // the rule, the scan may be a part of another plan now, under other conditions.
    boolean isKnown = size != null && size.answer() != null && planner.isOn
        && hasCondition(asked(partitionFilters, dataFilters));
    Listing.Rest rest = isKnown ? Listing.rest(size.answer(), all, scanned) : null;
    return rest == null ? all : rest.directories();
  }

  /** The conjuncts for which files are listed. */
  private List<Expression> asked(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    // No index is read for files of other folders, and the plan shows the whole condition.
    return Stream.of(partitionFilters, dataFilters, mixed)
        .flatMap(one -> Scala.<Expression>stream(one))
        .toList();
  }

  /** Whether all of the condition is among these conjuncts, so that rows need to match it. */
  private boolean hasCondition(List<Expression> conjuncts) {
    var known = conjuncts.stream().map(one -> one.canonicalized()).collect(toSet());
    return Scala.stream(condition).allMatch(one -> known.contains(one.canonicalized()));
  }

  private Seq<PartitionDirectory> withMatches(
      Seq<PartitionDirectory> all, Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    ArrayNode keys = keys();
    Seq<Expression> asked = Scala.listed(asked(partitionFilters, dataFilters));
    Listing.Answer known = null;
    if (query.get("ahead\n" + scanned.question(keys, asked)) instanceof PlannerCalls.Ahead ahead
        && ahead.rulesOutNothing()) {
      known = new Listing.Answer(ahead.number(), null, null, null);
    }
    return told(scanned.left("read", keys, asked, known, all, query));
  }

  /** What is left to read, of which the planner is told. */
  private Seq<PartitionDirectory> told(Listing.Rest rest) {
    scanned.planner().tell(System.identityHashCode(this), rest);
    return rest.directories();
  }

  /**
   * Ask what Spark will ask when it lists the files, in the time that it plans the rest.
   *
   * Only for conditions that Spark passes on as they are.
   */
  void askAhead() {
    boolean isOther = first != null || covered != null || scanned.hasPartitions();
    if (isOther || condition.isEmpty() && !hasKeys()) return;
    if (scanned.planner().isResting(scanned.root(), query, false)) return;
    String asked = scanned.question(keys(), condition);
    if (query.get("ahead\n" + asked) instanceof PlannerCalls.Ahead known && !known.isOver()) return;
    query.put("ahead\n" + asked, scanned.planner().askAhead("ahead", asked, query, scanned.root()));
  }

  /** Lets the planner record, once for a query, which files would be skipped. */
  void observe() throws Exception {
    String asked = scanned.question(keys(), condition);
    query.once("observed\n" + asked, () -> scanned.planner().observe(asked, query));
  }

  /** For each column that is joined, its name, and a list of keys or what it is joined with. */
  private ArrayNode keys() {
    ArrayNode all = Json.array();
    for (Dimension one : keys) one.addTo(all);
    return all;
  }

  @Override
  public long sizeInBytes() {
    return size == null ? scanned.base().sizeInBytes() : size.bytes();
  }

  /**
   * Spark finds scans that it can run once by this, so it says all that decides what is read.
   *
   * The size is not of it: files are left out by it only under conditions that Spark compares.
   */
  @Override
  public boolean equals(Object other) {
    return this == other
        || other instanceof SkippingFileIndex index && query.isSame(index.query)
        && scanned.base().equals(index.scanned.base())
        && scanned.planner() == index.scanned.planner() && mixedJson.equals(index.mixedJson)
        && keys.equals(index.keys) && covered == index.covered
        && Objects.equals(first, index.first);
  }

  @Override
  public int hashCode() {
    return scanned.base().hashCode();
  }

  @Override
  public String toString() {
    return "SkippingFileIndex(" + scanned.root() + ")";
  }
}
