package skipindex;

import java.io.IOException;
import java.nio.file.Paths;
import org.apache.spark.SparkContext;
import org.slf4j.*;

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
  /** Nanoseconds in which a planner has begun, or queries go on without it. */
  private static final long BEGIN_NANOS = 1_000_000_000L;
  /** Nanoseconds after which a planner is given up that has not said what rules need. */
  private static final long HELLO_NANOS = 10_000_000_000L;
  private static final int MOST_DOUBLINGS = 7;
  private static final Logger LOG = LoggerFactory.getLogger("skipindex");
  private volatile Child child;
  private boolean isKnown;
  /** Whether it was logged that queries read all files. */
  private boolean isLogged;
  private long begun;
  /** How often in a row it did not start. */
  private int failures;

  /** A Python that hangs does not see that its questions end. */
  Served() {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      Child last = child;
      if (last != null) last.kill();
    }));
  }

  /** Begins to start the process; nothing waits for it yet. */
  synchronized void start() {
    begun = System.nanoTime();
    isLogged = false;
    try {
      var conf = SparkContext.getOrCreate().getConf();
      var own = Served.class.getProtectionDomain().getCodeSource().getLocation();
      String jar = Paths.get(own.toURI()).getFileName().toString();
      child = new Child(conf.get(PYTHON, "python3"), "-P", "-m", MODULE, jar);
    } catch (Exception problem) {
      log("the planner cannot be started: " + problem);
    }
  }

  @Override
  synchronized PlannerCalls planner() {
    // A Python that hangs would have queries wait for it again and again.
    long rest = restSeconds * 1_000_000_000L << Math.min(failures, MOST_DOUBLINGS);
    if (child == null && System.nanoTime() - begun > rest) start();
    if (child == null) return null;
    IOException end = child.end();
    if (!isKnown)
      meet();
    else if (end != null)
      give("the planner has stopped: " + end.getMessage());
    return super.planner();
  }

  private void meet() {
    long age = System.nanoTime() - begun;
    try {
      if (!child.hasBegun(BEGIN_NANOS - age) && age < HELLO_NANOS) {
        log("the planner did not start within a second");
        return;
      }
      String[] hello = child.hello(HELLO_NANOS - age);
      // Statements need a session of Python.
      connect(child::ask, null, hello[0], hello[1]);
      isKnown = true;
      failures = 0;
      isLogged = false;
    } catch (Exception problem) {
      give("the planner does not start: " + problem);
    }
  }

  /** Do without a planner for a while. */
  private void give(String why) {
    log(why);
    if (isKnown) disconnect(); // what it numbered means nothing to the next one
    child.kill();
    child = null;
    failures += isKnown ? 0 : 1;
    isKnown = false;
    begun = System.nanoTime();
  }

  /** One line for each planner. */
  private void log(String why) {
    if (!isLogged) LOG.warn(why + "; queries read all files until a planner answers");
    isLogged = true;
  }
}
