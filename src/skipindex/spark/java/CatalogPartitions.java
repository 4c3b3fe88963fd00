package skipindex;

import java.util.*;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
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
  final List<Expression> added;

  CatalogPartitions(
      FileIndex base, TableIdentifier table, SessionState session, Set<String> names,
      Expression filter) {
    super(base);
    this.table = table;
    this.session = session;
    this.names = names;
    this.filter = filter;
    this.added = SkipRule.split(filter);
  }

  /** The folders of all partitions that the catalog has now. */
  static Set<String> names(TableIdentifier table, SessionState session) {
    var all = session.catalog().listPartitionNames(table, Option.empty());
    return new HashSet<>(Scala.<String>list(all));
  }

  @Override
  public Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    if (names.equals(names(table, session))) {
      return Scala.kept(base.listFiles(partitionFilters, dataFilters));
    }
    var own = Scala.<Expression>stream(partitionFilters)
                  .filter(one -> !Partitions.isAmong(one, added))
                  .toList();
    return Scala.kept(base.listFiles(Scala.listed(own), dataFilters));
  }

  /** The filter is of the plan, which Spark compares too. */
  @Override
  public boolean equals(Object other) {
    return other instanceof CatalogPartitions index && base.equals(index.base)
        && names.equals(index.names);
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
