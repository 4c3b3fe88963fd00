package skipindex;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.*;
import org.apache.spark.sql.execution.datasources.*;

/** What the options of a scan, or else of its table, say that its folders are made of. */
final class Declared {
  private Declared() {}

  /** In the order of their names, so that one declaration is always one text; may be empty. */
  static ObjectNode by(LogicalRelation scan) {
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
}
