package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Tuple2;

/** What the options of a scan, or else of its table, say that its folders are made of. */
final class Declared {
  private Declared() {}

  /** In the order of their names, so that one declaration is always one text; may be empty. */
  static ObjectNode by(LogicalRelation scan) {
    Map<String, String> said = said(((HadoopFsRelation) scan.relation()).options());
    if (said.isEmpty() && scan.catalogTable().isDefined()) {
      said = said(scan.catalogTable().get().properties());
    }
    ObjectNode written = Json.object();
    for (Map.Entry<String, String> one : said.entrySet()) {
      written.put(one.getKey(), one.getValue());
    }
    return written;
  }

  private static Map<String, String> said(scala.collection.immutable.Map<String, String> options) {
    Map<String, String> said = new TreeMap<>();
    for (Tuple2<String, String> pair : Scala.each(options)) {
      String name = pair._1().toLowerCase(Locale.ROOT);
      boolean isOurs = name.startsWith("skipindex.derived.") || name.startsWith("skipindex.time.");
      if (isOurs) said.put(name, pair._2());
    }
    return said;
  }
}
