package skipindex;

import org.apache.spark.sql.SparkSessionExtensions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** What {@code spark.sql.extensions} names, so that sessions are pruned by configuration. */
public class Extension extends AbstractFunction1<Object, Object> {
  private static final Logger LOG = LoggerFactory.getLogger("skipindex");
  private static Served sessions;

  @Override
  @SuppressWarnings({"rawtypes", "unchecked"}) // a function of any object is one of a session
  public Object apply(Object extensions) {
    String missing = Links.missing();
    if (missing == null)
      ((SparkSessionExtensions) extensions).injectOptimizerRule((Function1) served());
    else
      LOG.warn("queries read all files: skipindex does not link with this Spark: " + missing);
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
