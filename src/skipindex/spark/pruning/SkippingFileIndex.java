package skipindex;

import java.util.ArrayList;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/**
 * A file index of Spark's, without the files that hold no row for which the filters are TRUE.
 *
 * It lists what the other index lists. A file that the planner does not know, or knows with
 * another size or time, stays.
 */
public class SkippingFileIndex implements FileIndex {
    final FileIndex base;
    final PlannerCalls planner;
    final Path root;
    final StructType data;
    final scala.collection.immutable.Map options;
    final boolean isCatalogTable;
    volatile long estimate = -1L;

    SkippingFileIndex(
            HadoopFsRelation relation, PlannerCalls planner, Path root, boolean isCatalogTable) {
        this.base = relation.location();
        this.planner = planner;
        this.root = root;
        this.data = relation.dataSchema();
        this.options = relation.options();
        this.isCatalogTable = isCatalogTable;
    }

    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        return remaining(partitionFilters, dataFilters, false);
    }

    SEQ remaining(SEQ partitionFilters, SEQ dataFilters, boolean isEstimate) {
        SEQ all = base.listFiles(partitionFilters, dataFilters);
        if (dataFilters.isEmpty() || all.isEmpty() || !planner.isEnabled()) return all;
        PlannerCalls.Answer answer;
        try {
            String question = planner.question(
                root, isEstimate, isCatalogTable, data, base.partitionSchema(), options,
                ExpressionJson.json(dataFilters));
            answer = planner.ask(question, root);
        } catch (Throwable problem) {
            planner.report(problem);
            return all;
        }
        return answer == null ? all : without(all, answer);
    }

    private static SEQ without(SEQ all, PlannerCalls.Answer answer) {
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

    /** Take the bytes of the files that remain for the size of the relation. */
    void estimate(SEQ dataFilters) {
        SEQ none = TO_SEQ(new ArrayList());
        long bytes = 0L;
        scala.collection.Iterator i = remaining(none, dataFilters, true).iterator();
        while (i.hasNext()) {
            scala.collection.Iterator j = ((PartitionDirectory) i.next()).files().iterator();
            while (j.hasNext()) bytes += ((FileStatusWithMetadata) j.next()).fileStatus().getLen();
        }
        estimate = Math.max(1L, Math.min(bytes, base.sizeInBytes()));
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
        return other instanceof SkippingFileIndex && base.equals(((SkippingFileIndex) other).base);
    }

    public int hashCode() {
        return base.hashCode();
    }

    public String toString() {
        return "SkippingFileIndex(" + root + ")";
    }
}
