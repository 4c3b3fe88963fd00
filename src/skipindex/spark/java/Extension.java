package skipindex;

import org.apache.spark.sql.SparkSessionExtensions;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** What {@code spark.sql.extensions} names, so that sessions are pruned by configuration. */
public class Extension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  private static Served sessions;

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    String missing = Links.missing();
    if (missing == null)
      extensions.injectOptimizerRule(served()::rule);
    else
      LoggerFactory.getLogger("skipindex")
          .warn("queries read all files: skipindex does not link with this Spark: " + missing);
    return BoxedUnit.UNIT;
  }

  /** One for all sessions of this JVM. */
  private static synchronized Served served() {
    if (sessions == null) {
      sessions = new Served();
      sessions.start();
    }
    return sessions;
  }
}
