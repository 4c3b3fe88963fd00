package skipindex;

import java.util.Locale;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Tuple2;

/** What the options of a scan, or else of its table, say that its folders are made of. */
class Declared {
  /** As a member of a question, after a comma; empty if nothing is said. */
  static String member(LogicalRelation scan) {
    TreeMap<String, String> said = said(((HadoopFsRelation) scan.relation()).options());
    if (said.isEmpty() && scan.catalogTable().isDefined()) {
      said = said(((CatalogTable) scan.catalogTable().get()).properties());
    }
    if (said.isEmpty()) return "";
    StringBuilder text = new StringBuilder();
    for (String name : said.keySet()) {
      text.append(text.length() == 0 ? ",\"derived\":{" : ",");
      Question.quote(text, name);
      text.append(':');
      Question.quote(text, (String) said.get(name));
    }
    return text.append('}').toString();
  }

  /** In the order of their names, so that one declaration is always one text. */
  private static TreeMap<String, String> said(
      scala.collection.immutable.Map<String, String> options) {
    TreeMap<String, String> said = new TreeMap<>();
    for (Tuple2<String, String> pair : Scala.each(options)) {
      String name = ((String) pair._1()).toLowerCase(Locale.ROOT);
      boolean isOurs = name.startsWith("skipindex.derived.") || name.startsWith("skipindex.time.");
      if (isOurs) said.put(name, (String) pair._2());
    }
    return said;
  }
}
