package skipindex;

import com.fasterxml.jackson.databind.node.*;
import java.time.LocalDate;
import java.util.*;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * The files that a scan is of, whatever a query asks of them.
 *
 * takesRewritten: whether hidden files are read for those that they were rewritten from.
 * declared: what the folders are made of, if the scan or its table tells.
 * told: what a question tells of the schemas; made once it is asked for.
 */
record Scanned(
    HadoopFsRelation relation, PlannerCalls planner, Path root, boolean takesRewritten,
    boolean isCatalogTable, ObjectNode declared, AtomicReference<ObjectNode> told) {
  private static final List<String> LENIENT = List.of("ignoreCorruptFiles", "ignoreMissingFiles");

  /** Spark's own file index. */
  FileIndex base() {
    return relation.location();
  }

  /** Of the session that defined the relation: Spark reads files as it says. */
  SQLConf reader() {
    return relation.sparkSession().sessionState().conf();
  }

  /** Whether the files are those that a plan of Python left. */
  static boolean isPlanned(FileIndex index) {
    return index instanceof PlannedRelation.Index;
  }

  /** The same for another plan, asked of this planner. */
  Scanned by(PlannerCalls planner, boolean takesRewritten) {
    return new Scanned(relation, planner, root, takesRewritten, isCatalogTable, declared, told);
  }

  /** Whether Spark leaves out files that it cannot read, so that rows may be missing. */
  boolean isLenient() {
    List<String> options = Scala.list(relation.options().keys());
    for (String one : LENIENT) {
      boolean isOption = options.stream().anyMatch(one::equalsIgnoreCase);
      if (isOption || isSet(SQLConf.get(), one) || isSet(reader(), one)) return true;
    }
    return false;
  }

  private static boolean isSet(SQLConf conf, String lenient) {
    String value = conf.getConfString("spark.sql.files." + lenient, "false");
    return !value.equalsIgnoreCase("false");
  }

  /** The index of a catalog lists folders that a partition filter has not left out. */
  boolean isOfCatalog() {
    return SkipRule.isOfCatalog(base());
  }

  boolean hasPartitions() {
    return base().partitionSchema().nonEmpty();
  }

  /** All that Spark lists. */
  Seq<PartitionDirectory> all() {
    return listed(base(), Scala.none());
  }

  /** What an index of Spark's lists for a condition on columns of files. */
  static Seq<PartitionDirectory> listed(FileIndex index, Seq<Expression> condition) {
    return Scala.kept(index.listFiles(Scala.none(), condition));
  }

  /** Whether a conjunct has columns of files and of folders. */
  boolean isMixed(Expression conjunct) {
    var names = Arrays.asList(base().partitionSchema().fieldNames());
    var columns = Scala.<Attribute>list(conjunct.references());
    long ofFolders = columns.stream().filter(one -> names.contains(one.name())).count();
    return ofFolders > 0L && ofFolders < columns.size();
  }

  /**
   * What is left to read of what Spark lists, under conditions and with keys of joins.
   *
   * known: the answer, if there is one already.
   */
  Listing.Rest left(
      String purpose, ArrayNode keys, Seq<Expression> conjuncts, Listing.Answer known,
      Seq<PartitionDirectory> all, Query query) {
    var found = known;
    if (found == null) found = planner.ask(purpose, question(keys, conjuncts), query, root);
    var rest = Listing.rest(found, all, this);
    if (rest != null) return rest;
    ObjectNode instead = Json.object().put("instead_of", found.number);
    String asked = question(keys, instead, ExpressionJson.json(conjuncts));
    return Listing.rest(planner.ask(purpose, asked, query, root), all, this);
  }

  /** All that an answer depends on: a line of JSON, and then the conjuncts as JSON. */
  String question(ArrayNode keys, Seq<Expression> conjuncts) {
    ObjectNode more = Json.object();
    if (takesRewritten) more.put("takes_rewritten", true);
    return question(keys, more, ExpressionJson.json(conjuncts));
  }

  /** The same with other members; without them, about no hidden files. */
  String question(ArrayNode keys, ObjectNode more, String conjuncts) {
    if (told.get() == null) {
      var partitions = base().partitionSchema();
      told.set(Question.scan(relation.dataSchema(), partitions, isCatalogTable));
    }
    ObjectNode question = Question.about(root, told.get(), planner.settings, keys, conjuncts);
    Question.addReading(question, relation, planner.settings);
    if (!declared.isEmpty()) question.set("derived", declared);
    if (isPlanned(base())) question.put("is_planned", true);
    question.setAll(more);
    return Json.text(question) + "\n" + conjuncts;
  }

  /**
   * What the options of a scan, or else of its table, say that its folders are made of.
   *
   * In the order of their names, so that one declaration is always one text; may be empty.
   */
  static ObjectNode declaredBy(LogicalRelation scan) {
    var said = said(((HadoopFsRelation) scan.relation()).options());
    if (said.isEmpty() && scan.catalogTable().isDefined()) {
      said = said(scan.catalogTable().get().properties());
    }
    ObjectNode written = Json.object();
    said.forEach(written::put);
    return written;
  }

  private static Map<String, String> said(scala.collection.immutable.Map<String, String> options) {
    var said = new TreeMap<String, String>();
    for (var pair : Scala.each(options)) {
      String name = pair._1().toLowerCase(Locale.ROOT);
      boolean isOurs = name.startsWith("skipindex.derived.") || name.startsWith("skipindex.time.");
      if (isOurs) said.put(name, pair._2());
    }
    return said;
  }

  /** A declaration is of the catalog's values, and the planner goes by the names of folders. */
  boolean isDeclaredByCatalog() {
    return isCatalogTable && !declared.isEmpty();
  }

  /** Whether the planner takes the files of a partition for those that a declaration is of. */
  boolean isInPlace(PartitionDirectory directory) {
    if (!isDeclaredByCatalog() || directory.files().isEmpty()) return true;
    Path file = directory.files().iterator().next().fileStatus().getPath();
    var columns = base().partitionSchema().fields();
    for (int i = 0; i < columns.length; i++) {
      Object value = directory.values().get(i, columns[i].dataType());
      if (columns[i].dataType() instanceof DateType && value instanceof Integer days) {
        value = UTF8String.fromString(LocalDate.ofEpochDay(days).toString());
      }
      if (!isNamed(file.getParent(), columns[i].name(), value)) return false;
    }
    return true;
  }

  /** Whether one folder on the way to the root has this name, and the value is a text of it. */
  private boolean isNamed(Path folder, String name, Object value) {
    int named = 0;
    for (Path path = folder; path != null && !path.equals(root); path = path.getParent()) {
      String[] parts = path.getName().split("=", 2);
      if (!ExternalCatalogUtils.unescapePathName(parts[0]).equalsIgnoreCase(name)) continue;
      named++;
      if (parts.length < 2) return false;
      String text = ExternalCatalogUtils.unescapePathName(parts[1]);
      boolean isSame = value instanceof UTF8String
          ? value.toString().equals(text)
          : value instanceof Number && value.toString().equals(plain(text));
      if (!isSame) return false;
    }
    return named == 1;
  }

  /** A number without the zeros that it begins with. */
  private static String plain(String digits) {
    return digits.replaceFirst("^0+(?=[0-9])", "");
  }

  /**
   * What is left to read by a question whose answer depends on all files that are read.
   *
   * It is first about all files of the planner, and then about those that Spark lists.
   */
  Listing.Rest ask(
      Seq<PartitionDirectory> all, ObjectNode more, Seq<Expression> conjuncts, Query query) {
    String json = ExpressionJson.json(conjuncts);
    var found = planner.ask("read", question(Json.array(), more, json), query, root);
    String listed = found.isNone() ? "" : found.listing.listed(root, all);
    if (listed.contains("0")) {
      ObjectNode about = more.deepCopy()
                             .put("listing", found.listing.number)
                             .put("listed", listed)
                             .put("instead_of", found.number);
      found = planner.ask("read", question(Json.array(), about, json), query, root);
    }
    return Listing.rest(found, all, this);
  }
}
