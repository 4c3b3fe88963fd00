package skipindex;

import java.util.ArrayList;
import java.util.Arrays;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * A file index of Spark's, without the files that hold no row for which the filters are TRUE.
 *
 * It lists what the other index lists. A file that the planner does not know, or knows with
 * another size or time, stays.
 */
public class SkippingFileIndex implements FileIndex {
    static final SEQ NOTHING = TO_SEQ(new ArrayList());
    final FileIndex base;
    final PlannerCalls planner;
    final Path root;
    final StructType data;
    final scala.collection.immutable.Map options;
    /** Of the session that defined the relation: Spark reads files as it says. */
    final SQLConf reader;
    final boolean isCatalogTable;
    volatile long estimate = -1L;
    /** Conjuncts that Spark does not pass on, as they have columns of files and of folders. */
    private volatile SEQ mixed;
    private volatile String mixedJson = "";
    private volatile ArrayList keys = new ArrayList();
    private volatile TopRows first;
    private volatile boolean isAsked;
    /** The conjuncts of the condition right above the scan. */
    private volatile SEQ condition = NOTHING;
    private volatile PlannerCalls.Ahead ahead;
    /** The schemas, and the conjuncts that were written last, as questions have them. */
    private String schemas;
    private SEQ written;
    private String writtenJson;
    /** Files whose rows the plan has otherwise; null if there are none. */
    private final Listing.Covered covered;

    SkippingFileIndex(
            HadoopFsRelation relation, PlannerCalls planner, Path root, boolean isCatalogTable) {
        this.base = relation.location();
        this.planner = planner;
        this.root = root;
        this.data = relation.dataSchema();
        this.options = relation.options();
        this.reader = relation.sparkSession().sessionState().conf();
        this.isCatalogTable = isCatalogTable;
        this.covered = null;
    }

    private SkippingFileIndex(SkippingFileIndex other, Listing.Covered covered) {
        this.base = other.base;
        this.planner = other.planner;
        this.root = other.root;
        this.data = other.data;
        this.options = other.options;
        this.reader = other.reader;
        this.isCatalogTable = other.isCatalogTable;
        this.estimate = other.estimate;
        this.mixed = other.mixed;
        this.mixedJson = other.mixedJson;
        this.covered = covered;
    }

    /** The same index without files whose rows the plan has otherwise. */
    SkippingFileIndex without(Listing.Covered covered) {
        return new SkippingFileIndex(this, covered);
    }

    /** Whether results over some files may be put into the plan; it is asked once. */
    boolean canBeAnswered() {
        return !isAsked && covered == null && keys.isEmpty() && !isOfCatalog();
    }

    void setAsked() {
        isAsked = true;
    }

    /** The index of a catalog lists folders that a partition filter has not left out. */
    private boolean isOfCatalog() {
        return base.getClass().getSimpleName().equals("CatalogFileIndex");
    }

    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        return remaining(partitionFilters, dataFilters, false);
    }

    SEQ remaining(SEQ partitionFilters, SEQ dataFilters, boolean isEstimate) {
        SEQ all = base.listFiles(partitionFilters, dataFilters);
        if (covered != null) return without(all, covered); // with those that hold no match
        boolean asksAll = isEstimate || first == null || !keys.isEmpty();
        boolean asksNothing = dataFilters.isEmpty() && mixed == null && keys.isEmpty();
        if (asksAll && asksNothing || all.isEmpty() || !planner.isEnabled()) return all;
        Listing.Answer answer;
        try {
            if (asksAll) {
                String keysJson = isEstimate ? "" : keysJson();
                String asked = question(keysJson, "", withMixed(dataFilters));
                if (ahead != null && ahead.rulesOutNothing(asked)) return all;
                answer = planner.ask(isEstimate ? "estimate" : "read", asked, root);
            } else {
                answer = ask(all, first.json(), first.conjuncts);
            }
        } catch (Throwable problem) {
            planner.report(problem);
            return all;
        }
        return answer == null ? all : without(all, answer);
    }

    /** The answer to a question about those of the planner's files that Spark lists. */
    Listing.Answer ask(SEQ all, String more, SEQ conjuncts) {
        String number = question("", ",\"listing\":0", NOTHING);
        String listed = planner.listed(number, root, all);
        if (listed == null) return null;
        return planner.ask("read", question("", listed + more, conjuncts), root);
    }

    /**
     * Ask what Spark will ask when it lists the files, in the time that it plans the rest.
     *
     * Only for conditions that Spark passes on as they are.
     */
    void askAhead() {
        boolean isOther = first != null || covered != null || isAsked || !keys.isEmpty();
        if (isOther || condition.isEmpty() || base.partitionSchema().nonEmpty()) return;
        ahead = planner.askAhead(question("", "", condition));
    }

    private synchronized String question(String keysJson, String more, SEQ conjuncts) {
        if (schemas == null) schemas = Question.schemas(data, base.partitionSchema());
        if (written == null || !written.equals(conjuncts)) {
            writtenJson = ExpressionJson.json(conjuncts);
            written = conjuncts;
        }
        return Question.text(
            planner.settings, root, isCatalogTable, schemas, options, reader, keysJson, more, writtenJson);
    }

    private static SEQ without(SEQ all, Listing.Answer answer) {
        ArrayList directories = new ArrayList();
        scala.collection.Iterator i = all.iterator();
        while (i.hasNext()) {
            PartitionDirectory directory = (PartitionDirectory) i.next();
            ArrayList files = new ArrayList();
            int n = 0;
            scala.collection.Iterator j = directory.files().iterator();
            while (j.hasNext()) {
                FileStatusWithMetadata file = (FileStatusWithMetadata) j.next();
                n++;
                if (!answer.rulesOut(file.fileStatus())) files.add(file);
            }
            if (files.size() == n) directories.add(directory);
            else if (!files.isEmpty()) {
                directories.add(new PartitionDirectory(directory.values(), TO_SEQ(files)));
            }
        }
        return TO_SEQ(directories);
    }

    private SEQ withMixed(SEQ dataFilters) {
        if (mixed == null) return dataFilters;
        ArrayList both = new ArrayList();
        add(both, dataFilters);
        add(both, mixed);
        return TO_SEQ(both);
    }

    private static void add(ArrayList list, SEQ more) {
        scala.collection.Iterator each = more.iterator();
        while (each.hasNext()) list.add(each.next());
    }

    /**
     * For each column that is joined, its name, and a list of keys or what it is joined with,
     * where the planner has an index for it.
     */
    private String keysJson() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < keys.size(); i++) {
            JoinKeys one = (JoinKeys) keys.get(i);
            try {
                String uses = planner.usesOf(root, one);
                if (uses.indexOf('a') >= 0) add(text, one.column, one.dimension);
                String listed = uses.indexOf('k') >= 0 ? one.json() : null;
                if (listed != null) add(text, one.column, listed);
            } catch (Throwable problem) {
                planner.report(problem);
            }
        }
        return text.toString();
    }

    private static void add(StringBuilder text, String column, String json) {
        if (text.length() > 0) text.append(',');
        text.append('[');
        Question.quote(text, column);
        text.append(',').append(json).append(']');
    }

    boolean hasKeys() {
        return !keys.isEmpty();
    }

    /** Tell which keys columns need to have: JoinKeys. */
    void setKeys(ArrayList keys) {
        this.keys = keys;
    }

    /** Tell that the first rows of an order are enough. */
    void setFirst(TopRows first) {
        this.first = first;
    }

    /** Tell the condition right above the scan. */
    void setCondition(SEQ conjuncts, boolean withSize) {
        condition = conjuncts;
        ArrayList both = new ArrayList();
        scala.collection.Iterator each = conjuncts.iterator();
        while (each.hasNext()) {
            Expression one = (Expression) each.next();
            if (isMixed(one)) both.add(one);
        }
        if (!both.isEmpty()) {
            mixed = TO_SEQ(both);
            mixedJson = ExpressionJson.json(mixed);
        }
        if (withSize && !isOfCatalog()) estimate = bytes(conjuncts);
    }

    private boolean isMixed(Expression conjunct) {
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

    /** The size of the files that remain. */
    private long bytes(SEQ conjuncts) {
        long bytes = 0L;
        scala.collection.Iterator i = remaining(NOTHING, conjuncts, true).iterator();
        while (i.hasNext()) {
            scala.collection.Iterator j = ((PartitionDirectory) i.next()).files().iterator();
            while (j.hasNext()) bytes += ((FileStatusWithMetadata) j.next()).fileStatus().getLen();
        }
        return Math.max(1L, Math.min(bytes, base.sizeInBytes()));
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
        return estimate < 0L ? base.sizeInBytes() : estimate;
    }

    public StructType partitionSchema() {
        return base.partitionSchema();
    }

    public scala.Option metadataOpsTimeNs() {
        return base.metadataOpsTimeNs();
    }

    /** Spark finds scans that it can run once by this. */
    public boolean equals(Object other) {
        if (this == other) return true;
        if (!(other instanceof SkippingFileIndex)) return false;
        SkippingFileIndex index = (SkippingFileIndex) other;
        boolean isAlike = base.equals(index.base) && mixedJson.equals(index.mixedJson);
        boolean areWhole = first == null && index.first == null
            && covered == null && index.covered == null;
        return isAlike && areWhole && keys.isEmpty() && index.keys.isEmpty();
    }

    public int hashCode() {
        return base.hashCode();
    }

    public String toString() {
        return "SkippingFileIndex(" + root + ")";
    }
}
