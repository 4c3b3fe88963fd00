package skipindex;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * The files of a catalog's table, of which a filter of partitions was added to the query.
 *
 * The filter names partitions that the catalog had when the query was optimized. If it has others
 * when files are listed, the filter does not count.
 */
public class CatalogPartitions extends Wrapping {
  private final TableIdentifier table;
  private final SessionState session;
  private final Set<String> names;
  final Expression filter;

  /** Its conjuncts, as Spark passes them on. */
  final List<Expression> added = new ArrayList<>();

  CatalogPartitions(
      FileIndex base, TableIdentifier table, SessionState session, Set<String> names,
      Expression filter) {
    super(base);
    this.table = table;
    this.session = session;
    this.names = names;
    this.filter = filter;
    SkipRule.split(filter, added);
  }

  /** The folders of all partitions that the catalog has now. */
  static Set<String> names(TableIdentifier table, SessionState session) {
    Set<String> found = new HashSet<>();
    scala.collection.Seq<String> all = session.catalog().listPartitionNames(
        table, Option.<Map<String, String>>empty());
    for (String one : Scala.each(all)) found.add(one);
    return found;
  }

  static boolean isAmong(Expression one, List<? extends Expression> these) {
    for (Expression other : these)
      if (one.semanticEquals(other)) return true;
    return false;
  }

  @Override
  Seq<PartitionDirectory> list(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    if (names.equals(names(table, session))) {
      return Scala.kept(base.listFiles(partitionFilters, dataFilters));
    }
    List<Expression> own = new ArrayList<>();
    for (Expression one : Scala.each(partitionFilters)) {
      if (!isAmong(one, added)) own.add(one);
    }
    return Scala.kept(base.listFiles(Scala.listed(own), dataFilters));
  }

  /** The filter is of the plan, which Spark compares too. */
  @Override
  public boolean equals(Object other) {
    if (!(other instanceof CatalogPartitions)) return false;
    CatalogPartitions index = (CatalogPartitions) other;
    return base.equals(index.base) && names.equals(index.names);
  }

  @Override
  public int hashCode() {
    return base.hashCode();
  }

  @Override
  public String toString() {
    return base.toString();
  }
}
