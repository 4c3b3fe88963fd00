package skipindex;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** What {@code spark.sql.extensions} names, so that sessions are pruned by configuration. */
public class Extension extends AbstractFunction1<Object, Object> {
  private static Served sessions;

  @Override
  @SuppressWarnings({"rawtypes", "unchecked"}) // a function of any object is one of a session
  public Object apply(Object extensions) {
    ((SparkSessionExtensions) extensions).injectOptimizerRule((Function1) served());
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
