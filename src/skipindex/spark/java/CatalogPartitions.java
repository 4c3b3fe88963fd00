package skipindex;

import java.util.ArrayList;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StructType;

/**
 * The files of a catalog's table, of which a filter of partitions was added to the query.
 *
 * The filter names partitions that the catalog had when the query was optimized. If it has others
 * when files are listed, the filter does not count.
 */
public class CatalogPartitions implements FileIndex {
    private final FileIndex base;
    private final TableIdentifier table;
    private final SessionState session;
    private final HashSet names;
    final Expression filter;
    /** Its conjuncts, as Spark passes them on. */
    final ArrayList added = new ArrayList();

    CatalogPartitions(
            FileIndex base,
            TableIdentifier table,
            SessionState session,
            HashSet names,
            Expression filter) {
        this.base = base;
        this.table = table;
        this.session = session;
        this.names = names;
        this.filter = filter;
        SkipRule.split(filter, added);
    }

    /** The folders of all partitions that the catalog has now. */
    static HashSet names(TableIdentifier table, SessionState session) {
        HashSet found = new HashSet();
        SEQ all = (SEQ) session.catalog().listPartitionNames(table, scala.Option.empty());
        scala.collection.Iterator each = all.iterator();
        while (each.hasNext()) found.add(each.next());
        return found;
    }

    static boolean isAmong(Expression one, ArrayList conjuncts) {
        for (int i = 0; i < conjuncts.size(); i++) {
            if (one.semanticEquals((Expression) conjuncts.get(i))) return true;
        }
        return false;
    }

    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        if (names.equals(names(table, session))) {
            return base.listFiles(partitionFilters, dataFilters);
        }
        ArrayList own = new ArrayList();
        scala.collection.Iterator each = partitionFilters.iterator();
        while (each.hasNext()) {
            Expression one = (Expression) each.next();
            if (!isAmong(one, added)) own.add(one);
        }
        return base.listFiles(TO_SEQ(own), dataFilters);
    }

    public SEQ rootPaths() {
        return base.rootPaths();
    }

    public String[] inputFiles() {
        return base.inputFiles();
    }

    public void refresh() {
        base.refresh();
    }

    public long sizeInBytes() {
        return base.sizeInBytes();
    }

    public StructType partitionSchema() {
        return base.partitionSchema();
    }

    public scala.Option metadataOpsTimeNs() {
        return base.metadataOpsTimeNs();
    }

    /** The filter is of the plan, which Spark compares too. */
    public boolean equals(Object other) {
        if (!(other instanceof CatalogPartitions)) return false;
        CatalogPartitions index = (CatalogPartitions) other;
        return base.equals(index.base) && names.equals(index.names);
    }

    public int hashCode() {
        return base.hashCode();
    }

    public String toString() {
        return base.toString();
    }
}
