package skipindex;

import java.util.Locale;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** What the options of a scan, or else of its table, say that its folders are made of. */
class Declared {
    /** As a member of a question, after a comma; empty if nothing is said. */
    static String member(LogicalRelation scan) {
        TreeMap said = said(((HadoopFsRelation) scan.relation()).options());
        if (said.isEmpty() && scan.catalogTable().isDefined()) {
            said = said(((CatalogTable) scan.catalogTable().get()).properties());
        }
        if (said.isEmpty()) return "";
        StringBuilder text = new StringBuilder();
        java.util.Iterator names = said.keySet().iterator();
        while (names.hasNext()) {
            String name = (String) names.next();
            text.append(text.length() == 0 ? ",\"derived\":{" : ",");
            Question.quote(text, name);
            text.append(':');
            Question.quote(text, (String) said.get(name));
        }
        return text.append('}').toString();
    }

    /** In the order of their names, so that one declaration is always one text. */
    private static TreeMap said(scala.collection.immutable.Map options) {
        TreeMap said = new TreeMap();
        scala.collection.Iterator pairs = options.iterator();
        while (pairs.hasNext()) {
            scala.Tuple2 pair = (scala.Tuple2) pairs.next();
            String name = ((String) pair._1()).toLowerCase(Locale.ROOT);
            boolean isOurs = name.startsWith("skipindex.derived.")
                || name.startsWith("skipindex.time.");
            if (isOurs) said.put(name, pair._2());
        }
        return said;
    }
}
