package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * A scan of rows of an Iceberg table, without the tasks of files that hold no match.
 *
 * It is a copy of Iceberg's own scan, which has fewer tasks, as a filter at run time leaves it:
 * Iceberg does all else, such as deletes and splits. Its classes are looked up by their names,
 * as this jar is for drivers without them too. The scan stays where they have other members,
 * where it is a part of a command that changes rows, and where it reads no single snapshot.
 *
 * base: the scan with all tasks that Iceberg has planned.
 */
record Iceberg(LogicalPlan node, Object base) {
  private static final String PACKAGE = "org.apache.iceberg.";
  private static final String SCAN = PACKAGE + "spark.source.SparkBatchQueryScan";
  private static final String TABLE = PACKAGE + "spark.source.SparkTable";

  /** Fields of the scan, as its constructor takes them. */
  private static final String[] PARTS = {
      "spark",
      "table",
      "scan",
      "readConf",
      "expectedSchema",
      "filterExpressions",
      "scanReportSupplier"};

  /** Where a scan remembers its filters at run time, by which Spark tells scans apart. */
  private static final String FILTERS = "runtimeFilterExpressions";

  /** By class and name. */
  private static final Map<List<Object>, Method> METHODS = new ConcurrentHashMap<>();

  /** Filters of a copy, of which the first is the choice of files. */
  private static class Filters extends ArrayList<Object> {
    private static final long serialVersionUID = 1L;
    final transient Object base;

    Filters(Object base, Collection<?> filters, String choice) {
      super(filters);
      this.base = base;
      add(0, choice);
    }
  }

  /** The scan, with all tasks; null if it is no such node. */
  static Iceberg of(TreeNode<?> node) {
    if (!isScan(node)) return null;
    Object scan = ((Product) node).productElement(1);
    if (!scan.getClass().getName().equals(SCAN)) return null;
    Object base = scan;
    try {
      if (get(scan, FILTERS) instanceof Filters filters) base = filters.base;
    } catch (IllegalStateException unknown) {
      // Nothing was copied, and nothing will be.
    }
    return new Iceberg((LogicalPlan) node, base);
  }

  private static boolean isScan(TreeNode<?> node) {
    return Compat.HAS_ICEBERG && SkipRule.isNamed(node, "DataSourceV2ScanRelation");
  }

  /** Whether a plan changes rows, for which it has to read all files that it replaces. */
  static boolean isChange(LogicalPlan plan) {
    return Scala.stream(plan.collectLeaves())
        .anyMatch(leaf -> isScan(leaf) && SkipRule.isNamed(table(leaf), "RowLevelOperationTable"));
  }

  private static Object table(LogicalPlan node) {
    return call(((Product) node).productElement(0), "table");
  }

  /** The node as Spark made it. */
  LogicalPlan whole() {
    return with(base);
  }

  private LogicalPlan with(Object scan) {
    boolean isSame = ((Product) node).productElement(1).equals(scan);
    return isSame ? node : Change.part(node, 1, scan); // as Spark would keep it
  }

  /** The node with the tasks that conditions leave. */
  LogicalPlan left(Seq<Expression> conjuncts, PlannerCalls planner, Query query) throws Exception {
    if (conjuncts.isEmpty() || !table(node).getClass().getName().equals(TABLE)) return whole();
    Object table = get(base, "table");
    Object snapshot = snapshot(get(base, "scan"));
    if (snapshot == null || !isA(table, "BaseTable")) return whole();
    Path place = new Path((String) call(table, "location"));
    var conf = SparkContext.getOrCreate().hadoopConfiguration();
    Path root = planner.roots.of(Scala.seq(place), place, false, conf);
    if (root == null) return whole();
    String question = question(root, table, snapshot, conjuncts, planner);
    if (question == null) return whole();
    var answer = query.once(question, () -> planner.ask("read", question, query, root));
    return answer == null ? whole() : left(answer, planner);
  }

  /** The snapshot that is read; null if it is not a single one. */
  private static Object snapshot(Object scan) {
    return scan != null && isA(scan, "BatchScan") ? call(scan, "snapshot") : null;
  }

  /** What the planner is asked; null if the metadata are in no file. */
  private String question(
      Path root, Object table, Object snapshot, Seq<Expression> conjuncts, PlannerCalls planner) {
    Object metadata = call(call(table, "operations"), "current");
    Object current = call(metadata, "currentSnapshot");
    Object file = call(metadata, "metadataFileLocation");
    if (file == null || current == null) return null;
    Object id = call(snapshot, "snapshotId");
    String conditions = ExpressionJson.json(conjuncts);
    ObjectNode question = Question.about(
        root,
        Question.scan(node.schema(), new StructType(), false),
        planner.settings,
        Json.array(),
        conditions);
    ObjectNode told = question.putObject("iceberg");
    told.put("metadata", (String) file).put("snapshot", (long) id);
    told.put("is_current", call(current, "snapshotId").equals(id));
    ObjectNode names = told.putObject("names");
    Map<?, ?> nameOf = (Map<?, ?>) call(get(base, "expectedSchema"), "idToName");
    nameOf.forEach((number, name) -> names.put(number.toString(), (String) name));
    return Json.text(question) + "\n" + conditions;
  }

  /** The node without the tasks of files that an answer rules out. */
  private LogicalPlan left(Listing.Answer answer, PlannerCalls planner) {
    var tasks = (List<?>) call(base, "tasks");
    var left = new ArrayList<Object>();
    var paths = new ArrayList<String>();
    int unknown = 0;
    for (Object task : tasks) {
      Object file = call(task, "file");
      String path = (String) call(file, "location");
      int i = answer.isNone() ? -1 : position(answer, path, file);
      if (i >= 0 && answer.isMarked(i)) continue;
      if (i < 0 && !answer.isNone()) unknown++;
      left.add(task);
      paths.add(path);
    }
    Object scan = base;
    if (left.size() < tasks.size()) {
      String counts = left.size() + " of " + tasks.size() + " files";
      String files = DigestUtils.sha256Hex(String.join("\n", paths)).substring(0, 16);
      scan = copy("skipindex: " + counts + " #" + files);
      call(scan, "resetTasks", left);
    }
    var rest = new Listing.Rest(answer, null, tasks.size(), left.size(), unknown, 0L);
    planner.tell(scan.hashCode(), rest);
    return with(scan);
  }

  /** The position of a file that the planner knows; negative if it does not. */
  private static int position(Listing.Answer answer, String location, Object file) {
    String path = Listing.below(new Path(location), answer.root);
    int i = path == null ? -1 : answer.listing.positions.getOrDefault(path, -1);
    boolean isSame = i >= 0 && call(file, "fileSizeInBytes").equals(answer.listing.sizes[i]);
    return isSame ? i : -1;
  }

  private Object copy(String choice) {
    Object filters = new Filters(base, (List<?>) get(base, FILTERS), choice);
    // Of all its tasks, as Spark has planned with this before.
    call(base, "groupingKeyType");
    try {
      Constructor<?> made = base.getClass().getDeclaredConstructors()[0];
      made.setAccessible(true);
      Object copy = made.newInstance(Stream.of(PARTS).map(name -> get(base, name)).toArray());
      for (Field field : all(base, Class::getDeclaredFields).toList()) {
        if (Modifier.isStatic(field.getModifiers())) continue;
        field.setAccessible(true);
        field.set(copy, field.getName().equals(FILTERS) ? filters : field.get(base));
      }
      return copy;
    } catch (ReflectiveOperationException | IllegalArgumentException problem) {
      throw unknown(problem);
    }
  }

  private static boolean isA(Object one, String name) {
    return all(one, type -> new Class<?>[] {type})
        .anyMatch(type -> type.getName().equals(PACKAGE + name));
  }

  /** What the class of an object has, then its interfaces, and then those that it extends. */
  private static <T> Stream<T> all(Object of, Function<Class<?>, T[]> has) {
    return Stream.<Class<?>>iterate(of.getClass(), Objects::nonNull, Class::getSuperclass)
        .flatMap(type -> Stream.concat(Stream.of(type), Stream.of(type.getInterfaces())))
        .flatMap(type -> Stream.of(has.apply(type)));
  }

  private static Object get(Object of, String name) {
    var found = all(of, Class::getDeclaredFields).filter(one -> one.getName().equals(name));
    try {
      Field field = found.findFirst().orElseThrow(() -> new NoSuchFieldException(name));
      field.setAccessible(true);
      return field.get(of);
    } catch (ReflectiveOperationException problem) {
      throw unknown(problem);
    }
  }

  /** What a method gives, whoever may call it. */
  private static Object call(Object of, String name, Object... arguments) {
    try {
      return METHODS
          .computeIfAbsent(List.of(of.getClass(), name), any -> method(of, name, arguments.length))
          .invoke(of, arguments);
    } catch (ReflectiveOperationException problem) {
      throw unknown(problem.getCause() == null ? problem : problem.getCause());
    }
  }

  private static Method method(Object of, String name, int n) {
    var found = all(of, Class::getDeclaredMethods)
                    .filter(one -> one.getName().equals(name) && one.getParameterCount() == n)
                    .filter(one -> !one.isBridge())
                    .findFirst();
    if (found.isEmpty())
      throw unknown(new NoSuchMethodException(of.getClass().getName() + "." + name));
    found.get().setAccessible(true);
    return found.get();
  }

  private static IllegalStateException unknown(Throwable problem) {
    return new IllegalStateException("this version of Iceberg cannot be served: " + problem);
  }
}
