package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SessionState;

/**
 * The keys that a column of a scan needs to have, because the scan is joined.
 *
 * They are known by the other side's conditions, which indexes of the scan judge, by running
 * the other side when the files of the scan are listed, or both.
 */
class JoinKeys {
  private final String column;

  /** The other side as a folder and conditions, in JSON; null if these are not judged. */
  private final ObjectNode dimension;

  /** What the other side has; null if it need not run. */
  private final KeyList listed;

  /** Of the key among those that the other side runs for. */
  private final int position;

  private JoinKeys(String column, ObjectNode dimension, KeyList listed, int position) {
    this.column = column;
    this.dimension = dimension;
    this.listed = listed;
    this.position = position;
  }

  /**
   * What leaves out files of a scan that has no keys yet; null if nothing does.
   *
   * key: what the other side has for the column.
   * keys: all that the other side has for columns whose keys are of use.
   * mayRun: whether the other side may run for its keys.
   */
  static JoinKeys of(
      SkippingFileIndex index, String column, Attribute key, List<Attribute> keys, LogicalPlan side,
      boolean mayRun, SessionState session) {
    PlannerCalls planner = index.scanned.planner;
    Query query = index.query;
    // What a side is costs a listing, so it is written only where it can be of use.
    String uses = planner.usesOf(index.scanned.root, column, null, query);
    ObjectNode dimension = null;
    if (uses.indexOf('a') >= 0) {
      dimension = Dimension.json(side, key, planner);
      if (dimension != null) {
        uses = planner.usesOf(index.scanned.root, column, dimension, query);
        if (uses.indexOf('a') < 0) dimension = null;
      }
    }
    KeyList listed = null;
    if (mayRun && uses.indexOf('k') >= 0 && keys.contains(key)) {
      listed = query.shared(new KeyList(keys, side, session, query));
    }
    boolean isUsed = dimension != null || listed != null;
    return isUsed ? new JoinKeys(column, dimension, listed, keys.indexOf(key)) : null;
  }

  /** Whether files of a scan can be left out by a list of keys of a column. */
  static boolean hasUse(SkippingFileIndex index, String column) {
    PlannerCalls planner = index.scanned.planner;
    try {
      return planner.usesOf(index.scanned.root, column, null, index.query).indexOf('k') >= 0;
    } catch (Throwable problem) {
      planner.report(problem);
      return false;
    }
  }

  /** Lets the other side run, if it has to, so that several run at once. */
  void start(Scanned scanned) {
    if (listed == null) return;
    try {
      listed.start();
    } catch (Throwable problem) {
      scanned.planner.report(problem);
    }
  }

  /** Adds the column with what it is joined with, and with a list of keys. */
  void addTo(ArrayNode all, Scanned scanned) {
    if (dimension != null) all.addArray().add(column).add(dimension);
    if (listed == null) return;
    try {
      ArrayNode keys = listed.of(position, scanned);
      if (keys != null) all.addArray().add(column).add(keys);
    } catch (KeyList.Cancelled stopped) {
      throw stopped;
    } catch (Throwable problem) {
      scanned.planner.report(problem);
    }
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof JoinKeys)) return false;
    JoinKeys keys = (JoinKeys) other;
    return column.equals(keys.column) && position == keys.position
        && Objects.equals(dimension, keys.dimension) && Objects.equals(listed, keys.listed);
  }

  @Override
  public int hashCode() {
    return column.hashCode();
  }
}
