package skipindex;

import java.nio.file.Paths;
import java.security.CodeSource;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The sessions of a driver without Python, whose planner is a process of its own.
 *
 * One process serves all sessions. Where it does not start, or has ended, queries read all
 * files, and another one is started after a while.
 */
final class Served extends Sessions {
  static final String PYTHON = "spark.skipindex.python";
  private static final String MODULE = "skipindex.spark.pruning.child";
  /** Seconds for which queries do without a planner that has ended. */
  static volatile long restSeconds = 30L;
  private static final long SECONDS = 10L;
  private static final int MOST_DOUBLINGS = 7;
  private static final Logger LOG = LoggerFactory.getLogger("skipindex");
  private Child child;
  private boolean isKnown;
  private long begun;
  /** How often in a row it did not start. */
  private int failures;

  /** Begins to start the process; nothing waits for it yet. */
  synchronized void start() {
    begun = System.nanoTime();
    try {
      SparkConf conf = SparkContext.getOrCreate().getConf();
      CodeSource own = Served.class.getProtectionDomain().getCodeSource();
      String jar = Paths.get(own.getLocation().toURI()).getFileName().toString();
      child = new Child(conf.get(PYTHON, "python3"), "-m", MODULE, jar);
    } catch (Exception problem) {
      LOG.warn("no planner, so queries read all files: " + problem);
    }
  }

  @Override
  synchronized PlannerCalls planner() {
    // A Python that hangs would have queries wait for it again and again.
    long rest = restSeconds * 1_000_000_000L << Math.min(failures, MOST_DOUBLINGS);
    if (child == null && System.nanoTime() - begun > rest) start();
    if (child == null) return null;
    if (!isKnown)
      meet();
    else if (!child.isAlive())
      give("the planner has ended");
    return super.planner();
  }

  private void meet() {
    try {
      String[] hello = child.hello(SECONDS);
      connect(
          child.function(0),
          child.function(1),
          child.function(2),
          child.function(3),
          null, // statements need a session of Python
          hello[0],
          hello[1]);
      isKnown = true;
      failures = 0;
    } catch (Exception problem) {
      give("the planner does not start: " + problem);
    }
  }

  /** Do without a planner for a while. */
  private void give(String why) {
    LOG.warn(why + "; queries read all files until there is another one");
    if (isKnown) disconnect(); // what it numbered means nothing to the next one
    child.end();
    child = null;
    failures += isKnown ? 0 : 1;
    isKnown = false;
    begun = System.nanoTime();
  }
}
