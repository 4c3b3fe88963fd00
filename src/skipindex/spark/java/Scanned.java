package skipindex;

import com.fasterxml.jackson.databind.node.*;
import java.time.LocalDate;
import java.util.Arrays;
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
 * schemas: members of questions that tell the schemas; made once they are asked for.
 */
record Scanned(
    HadoopFsRelation relation, PlannerCalls planner, Path root, boolean takesRewritten,
    boolean isCatalogTable, ObjectNode declared, AtomicReference<ObjectNode> schemas) {
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
    return new Scanned(relation, planner, root, takesRewritten, isCatalogTable, declared, schemas);
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
  PlannerCalls.Numbered left(
      String purpose, ArrayNode keys, Seq<Expression> conjuncts, PlannerCalls.Numbered known,
      Seq<PartitionDirectory> all, Query query) {
    var found = known;
    if (found == null) found = planner.ask(purpose, question(keys, conjuncts), query, root);
    found = found.of(all, this);
    if (found.rest() != null) return found;
    ObjectNode instead = Json.object().put("instead_of", found.number());
    String asked = question(keys, instead, ExpressionJson.json(conjuncts));
    return planner.ask(purpose, asked, query, root).of(all, this);
  }

  /** All that an answer depends on: a line of JSON, and then the conjuncts as JSON. */
  String question(ArrayNode keys, Seq<Expression> conjuncts) {
    ObjectNode more = Json.object();
    if (takesRewritten) more.put("takes_rewritten", true);
    return question(keys, more, ExpressionJson.json(conjuncts));
  }

  /** The same with other members; without them, about no hidden files. */
  String question(ArrayNode keys, ObjectNode more, String conjuncts) {
    if (schemas.get() == null) {
      schemas.set(Question.schemas(relation.dataSchema(), base().partitionSchema()));
    }
    ObjectNode question = Question.about(root).put("is_catalog_table", isCatalogTable);
    question.setAll(schemas.get());
    Question.addSettings(question, planner.settings);
    Question.addOffsets(question, keys + conjuncts);
    Question.addReader(question, planner.settings, reader());
    Question.addOptions(question, relation.options());
    question.set("keys", keys);
    if (!declared.isEmpty()) question.set("derived", declared);
    if (isPlanned(base())) question.put("is_planned", true);
    question.setAll(more);
    return Json.text(question) + "\n" + conjuncts;
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

  /** The answer to a question about those of the planner's files that Spark lists. */
  PlannerCalls.Numbered ask(
      Seq<PartitionDirectory> all, ObjectNode more, Seq<Expression> conjuncts, Query query) {
    String any = question(Json.array(), Json.object().put("listing", 0), "[]");
    ObjectNode listed = planner.listed(any, all, query, root);
    listed.setAll(more);
    String asked = question(Json.array(), listed, ExpressionJson.json(conjuncts));
    return planner.ask("read", asked, query, root);
  }
}
