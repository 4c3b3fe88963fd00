package skipindex;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * Calls of Python functions of a text.
 *
 * Py4J writes 8192 bytes at a time. TCP holds the rest of a longer text back until the other
 * end acknowledges the first part, which it does after 40 ms (Nagle's algorithm, and delayed
 * acknowledgement). So there is a call for each piece of a text.
 */
public class Pieces {
  /** Py4J may write a character of a question as two bytes; all are ASCII. */
  static final int LENGTH = 4000;

  private static final AtomicLong TEXTS = new AtomicLong();

  /**
   * The function's result for the text.
   *
   * An argument starts with a line that names its text, tells how many pieces came before,
   * and whether more follow.
   */
  static Object call(Function<String, Object> function, String text) {
    long name = TEXTS.incrementAndGet();
    for (int before = 0;; before++) {
      int start = before * LENGTH;
      int end = Math.min(start + LENGTH, text.length());
      boolean isLast = end == text.length();
      String line = name + " " + before + (isLast ? " last\n" : " more\n");
      Object found = function.apply(line + text.substring(start, end));
      if (isLast) return found;
    }
  }
}
