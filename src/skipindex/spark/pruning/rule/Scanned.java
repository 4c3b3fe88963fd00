package skipindex;

import java.util.Arrays;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** The files that a scan is of, whatever a query asks of them. */
class Scanned {
    /** Spark's own file index. */
    final FileIndex base;
    final PlannerCalls planner;
    final Path root;
    final scala.collection.immutable.Map options;
    /** Of the session that defined the relation: Spark reads files as it says. */
    final SQLConf reader;
    private final boolean isCatalogTable;
    private final StructType data;
    /** The schemas, as questions have them; written once they are asked for. */
    private volatile String schemas;

    Scanned(HadoopFsRelation relation, PlannerCalls planner, Path root, boolean isCatalogTable) {
        this.base = relation.location();
        this.planner = planner;
        this.root = root;
        this.options = relation.options();
        this.reader = relation.sparkSession().sessionState().conf();
        this.isCatalogTable = isCatalogTable;
        this.data = relation.dataSchema();
    }

    private Scanned(Scanned other, PlannerCalls planner) {
        this.base = other.base;
        this.planner = planner;
        this.root = other.root;
        this.options = other.options;
        this.reader = other.reader;
        this.isCatalogTable = other.isCatalogTable;
        this.data = other.data;
        this.schemas = other.schemas;
    }

    /** The same, asked of another planner. */
    Scanned by(PlannerCalls planner) {
        return planner == this.planner ? this : new Scanned(this, planner);
    }

    /** The index of a catalog lists folders that a partition filter has not left out. */
    boolean isOfCatalog() {
        return base.getClass().getSimpleName().equals("CatalogFileIndex");
    }

    boolean hasPartitions() {
        return base.partitionSchema().nonEmpty();
    }

    /** Whether a conjunct has columns of files and of folders. */
    boolean isMixed(Expression conjunct) {
        if (!hasPartitions()) return false;
        boolean ofFolders = false;
        boolean ofFiles = false;
        String[] names = base.partitionSchema().fieldNames();
        scala.collection.Iterator columns = conjunct.references().iterator();
        while (columns.hasNext()) {
            String name = ((Attribute) columns.next()).name();
            if (Arrays.asList(names).contains(name)) ofFolders = true;
            else ofFiles = true;
        }
        return ofFolders && ofFiles;
    }

    /** All that an answer depends on; the arguments are members of it, in JSON. */
    String question(String keys, String more, String conjuncts) {
        if (schemas == null) schemas = Question.schemas(data, base.partitionSchema());
        return Question.text(
            planner.settings, root, isCatalogTable, schemas, options, reader, keys, more, conjuncts);
    }

    /** The answer to a question about those of the planner's files that Spark lists. */
    PlannerCalls.Numbered ask(SEQ all, String more, SEQ conjuncts, Query query) {
        String listed = planner.listed(question("", ",\"listing\":0", "[]"), all, query, root);
        String asked = question("", listed + more, ExpressionJson.json(conjuncts));
        return planner.ask("read", asked, query, root);
    }
}
