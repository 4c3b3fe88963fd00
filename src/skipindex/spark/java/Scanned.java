package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/** The files that a scan is of, whatever a query asks of them. */
class Scanned {
  /** Spark's own file index. */
  final FileIndex base;

  final PlannerCalls planner;
  final Path root;
  final scala.collection.immutable.Map<String, String> options;

  /** Of the session that defined the relation: Spark reads files as it says. */
  final SQLConf reader;

  /** Whether hidden files are read for those that they were rewritten from. */
  final boolean takesRewritten;

  private final boolean isCatalogTable;

  /** What the folders are made of, if the scan or its table tells. */
  private final ObjectNode declared;

  private final StructType data;

  /** Members of questions that tell the schemas; made once they are asked for. */
  private volatile ObjectNode schemas;

  Scanned(
      HadoopFsRelation relation, PlannerCalls planner, Path root, boolean takesRewritten,
      boolean isCatalogTable, ObjectNode declared) {
    this.base = relation.location();
    this.planner = planner;
    this.root = root;
    this.options = relation.options();
    this.reader = relation.sparkSession().sessionState().conf();
    this.takesRewritten = takesRewritten;
    this.isCatalogTable = isCatalogTable;
    this.declared = declared;
    this.data = relation.dataSchema();
  }

  private Scanned(Scanned other, PlannerCalls planner, boolean takesRewritten) {
    this.base = other.base;
    this.planner = planner;
    this.root = other.root;
    this.options = other.options;
    this.reader = other.reader;
    this.takesRewritten = takesRewritten;
    this.isCatalogTable = other.isCatalogTable;
    this.declared = other.declared;
    this.data = other.data;
    this.schemas = other.schemas;
  }

  /** The same for another plan, asked of this planner. */
  Scanned by(PlannerCalls planner, boolean takesRewritten) {
    boolean isSame = planner == this.planner && takesRewritten == this.takesRewritten;
    return isSame ? this : new Scanned(this, planner, takesRewritten);
  }

  /** The index of a catalog lists folders that a partition filter has not left out. */
  boolean isOfCatalog() {
    return SkipRule.isOfCatalog(base);
  }

  boolean hasPartitions() {
    return base.partitionSchema().nonEmpty();
  }

  /** All that Spark lists. */
  Seq<PartitionDirectory> all() {
    return Scala.kept(base.listFiles(Scala.<Expression>none(), Scala.<Expression>none()));
  }

  /** Whether a conjunct has columns of files and of folders. */
  boolean isMixed(Expression conjunct) {
    if (!hasPartitions()) return false;
    boolean ofFolders = false;
    boolean ofFiles = false;
    String[] names = base.partitionSchema().fieldNames();
    for (Attribute column : Scala.each(conjunct.references())) {
      if (Arrays.asList(names).contains(column.name()))
        ofFolders = true;
      else
        ofFiles = true;
    }
    return ofFolders && ofFiles;
  }

  /**
   * What is left to read of what Spark lists, under conditions and with keys of joins.
   *
   * known: the answer, if there is one already.
   */
  PlannerCalls.Numbered left(
      String purpose, ArrayNode keys, Seq<Expression> conjuncts, PlannerCalls.Numbered known,
      Seq<PartitionDirectory> all, Query query) {
    PlannerCalls.Numbered found = known;
    if (found == null) found = planner.ask(purpose, question(keys, conjuncts), query, root);
    found.rest = Listing.rest(found.answer, all, this);
    if (found.rest != null) return found;
    ObjectNode instead = Json.object().put("instead_of", found.number);
    String asked = question(keys, instead, ExpressionJson.json(conjuncts));
    found = planner.ask(purpose, asked, query, root);
    found.rest = Listing.rest(found.answer, all, this);
    return found;
  }

  /** All that an answer depends on: a line of JSON, and then the conjuncts as JSON. */
  String question(ArrayNode keys, Seq<Expression> conjuncts) {
    ObjectNode more = Json.object();
    if (takesRewritten) more.put("takes_rewritten", true);
    return question(keys, more, ExpressionJson.json(conjuncts));
  }

  /** The same with other members; without them, about no hidden files. */
  String question(ArrayNode keys, ObjectNode more, String conjuncts) {
    if (schemas == null) schemas = Question.schemas(data, base.partitionSchema());
    ObjectNode question = Question.about(root).put("is_catalog_table", isCatalogTable);
    question.setAll(schemas);
    Question.addSettings(question, planner.settings);
    Question.addOffsets(question, keys + conjuncts);
    Question.addReader(question, planner.settings, reader);
    Question.addOptions(question, options);
    question.set("keys", keys);
    if (!declared.isEmpty()) question.set("derived", declared);
    question.setAll(more);
    return Json.text(question) + "\n" + conjuncts;
  }

  /** A declaration is of the catalog's values, and the planner goes by the names of folders. */
  boolean isDeclaredByCatalog() {
    return isCatalogTable && !declared.isEmpty();
  }

  /** Whether the planner takes the files of a partition for those that a declaration is of. */
  boolean isInPlace(PartitionDirectory directory) {
    scala.collection.Iterator<FileStatusWithMetadata> files = directory.files().iterator();
    if (!isDeclaredByCatalog() || !files.hasNext()) return true;
    Path file = files.next().fileStatus().getPath();
    StructField[] columns = base.partitionSchema().fields();
    for (int i = 0; i < columns.length; i++) {
      Object value = directory.values().get(i, columns[i].dataType());
      if (columns[i].dataType() instanceof DateType && value != null) {
        long days = ((Integer) value).longValue();
        value = UTF8String.fromString(java.time.LocalDate.ofEpochDay(days).toString());
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
