package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * A side of a join that is a folder of Parquet files under conditions, as JSON.
 *
 * The planner may know its attributes as columns of the other side: then it judges the
 * conditions by the indexes of these columns, and the side does not run for its keys.
 */
class Dimension {
  static final int MAX_FILES = 10000;

  /** Null if the side is anything else. */
  static ObjectNode json(LogicalPlan side, Attribute key, PlannerCalls planner) {
    List<Expression> conjuncts = new ArrayList<>();
    LogicalPlan node = side;
    while (!(node instanceof LogicalRelation)) {
      if (node instanceof Filter)
        SkipRule.split(((Filter) node).condition(), conjuncts);
      else if (node instanceof Project)
        key = sourceOf(key, (Project) node);
      else if (!(node instanceof SubqueryAlias))
        return null;
      if (key == null) return null;
      node = (LogicalPlan) node.children().apply(0);
    }
    LogicalRelation scan = (LogicalRelation) node;
    if (scan.isStreaming() || !(scan.relation() instanceof HadoopFsRelation)) return null;
    HadoopFsRelation relation = (HadoopFsRelation) scan.relation();
    if (!relation.fileFormat().getClass().getName().equals(SkipRule.PARQUET)) return null;
    FileIndex location = relation.location();
    if (location instanceof SkippingFileIndex) {
      location = ((SkippingFileIndex) location).scanned.base;
    }
    if (!location.getClass().getSimpleName().equals("InMemoryFileIndex")) return null;
    String column = Joins.nameIn(scan, key);
    if (column == null || location.rootPaths().size() != 1) return null;
    Path root = (Path) location.rootPaths().apply(0);
    ObjectNode found = Question.place(root);
    if (!addFiles(found, location, root)) return null;
    found.put("key", column);
    found.setAll(Question.schemas(relation.dataSchema(), relation.partitionSchema()));
    SQLConf reader = relation.sparkSession().sessionState().conf();
    Question.addReader(found, planner.settings, reader);
    Question.addOptions(found, relation.options());
    Seq<Expression> asked = TopRows.normalized(asked(conjuncts, key, scan), scan);
    return found.put("conjuncts", ExpressionJson.json(asked));
  }

  /** What a projection has under the name of the key; null if it computes it. */
  private static Attribute sourceOf(Attribute key, Project project) {
    for (Object one : Scala.each(project.projectList())) {
      if (!(one instanceof Alias) || !((Alias) one).exprId().equals(key.exprId())) continue;
      Expression source = ((Alias) one).child();
      return source instanceof Attribute ? (Attribute) source : null;
    }
    return key;
  }

  /** The conjuncts on columns of the scan, but that the key is there: a match has one. */
  private static List<Expression> asked(
      List<Expression> conjuncts, Attribute key, LogicalRelation scan) {
    List<Expression> found = new ArrayList<>();
    for (Expression one : conjuncts) {
      boolean isOfKey = one instanceof IsNotNull && ((IsNotNull) one).child().semanticEquals(key);
      if (!isOfKey && one.references().subsetOf(scan.outputSet())) found.add(one);
    }
    return found;
  }

  /** Paths, sizes and times of the files that the scan lists; false if there are too many. */
  private static boolean addFiles(ObjectNode found, FileIndex location, Path root) {
    ArrayNode paths = found.putArray("paths");
    ArrayNode sizes = found.putArray("sizes");
    ArrayNode times = found.putArray("millis");
    scala.collection.Seq<PartitionDirectory> all = location.listFiles(
        Scala.<Expression>none(), Scala.<Expression>none());
    for (PartitionDirectory directory : Scala.each(all)) {
      for (FileStatusWithMetadata each : Scala.each(directory.files())) {
        FileStatus file = each.fileStatus();
        String path = Listing.below(file.getPath(), root);
        if (path == null || paths.size() >= MAX_FILES) return false;
        paths.add(path);
        sizes.add(file.getLen());
        times.add(file.getModificationTime());
      }
    }
    return true;
  }
}
