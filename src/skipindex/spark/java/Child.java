package skipindex;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The planner as a process of Python, which reads questions from one pipe and answers to another.
 *
 * These are its descriptors 3 and 4, which nothing else writes to: its standard output is its
 * standard error, and its standard input is empty. It ends when the questions end, so with this
 * JVM, however that ends. Its first bytes are SIGN. A question is its number and a text; an
 * answer has the number of the question. All numbers are of four bytes, and a text comes after
 * the number of its bytes, which is -1 for none.
 */
final class Child {
  /** The number of what it says without being asked: what the rules need to know. */
  private static final int HELLO = 0;

  private static final byte[] SIGN = "skipindex".getBytes(StandardCharsets.US_ASCII);

  /**
   * What a shell runs, so that the descriptors are in place before Python begins.
   *
   * Ctrl-C of a terminal, which cancels a query of spark-sql, does not end the planner.
   */
  private static final String SCRIPT = "trap '' INT; exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2";

  private static final String PATH = "PYTHONPATH";
  private static final long LOOK_NANOS = 100_000_000L;

  private final Process process;
  private final DataOutputStream questions;
  private final AtomicInteger numbers = new AtomicInteger(HELLO);
  private final Map<Integer, CompletableFuture<byte[]>> waiting = new ConcurrentHashMap<>();
  private final CompletableFuture<byte[]> sign = new CompletableFuture<>();
  private final CompletableFuture<byte[]> hello = new CompletableFuture<>();

  /** Bytes of the longest answer: memory for it is taken at once. */
  private final long limit = Runtime.getRuntime().maxMemory() / 4L;

  private volatile IOException end;

  Child(String... command) throws IOException {
    var shell = new ArrayList<>(List.of("/bin/sh", "-c", SCRIPT, "skipindex"));
    shell.addAll(List.of(command));
    waiting.put(HELLO, hello);
    ProcessBuilder builder = new ProcessBuilder(shell);
    // Python takes an empty folder of its path for the working folder.
    String path = builder.environment().getOrDefault(PATH, "");
    builder.environment().put(PATH, path.replaceAll("(?<=^|:):+|:+$", ""));
    process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    questions = new DataOutputStream(process.getOutputStream());
    var answers = new DataInputStream(process.getInputStream());
    var reader = new Thread(() -> read(answers), "skipindex-answers");
    reader.setDaemon(true);
    reader.start();
  }

  /**
   * Whether code of the planner runs by now.
   *
   * nanos: how long to wait for that.
   */
  boolean hasBegun(long nanos) throws Exception {
    try {
      await(sign, nanos);
      return true;
    } catch (TimeoutException late) {
      return false;
    }
  }

  /** The name of the folder of indexes, and the settings that a question tells, by lines. */
  String[] hello(long nanos) throws Exception {
    return new String(await(hello, nanos), StandardCharsets.UTF_8).split("\n", 2);
  }

  /** Its value; processes that the planner has left may hold the descriptors when it has ended. */
  private byte[] await(CompletableFuture<byte[]> future, long nanos) throws Exception {
    long start = System.nanoTime();
    while (true) {
      boolean isLast = !process.isAlive(); // all that it wrote was written before
      long left = nanos - (System.nanoTime() - start);
      try {
        return future.get(Math.max(0L, Math.min(left, LOOK_NANOS)), TimeUnit.NANOSECONDS);
      } catch (TimeoutException late) {
        if (isLast) throw closed();
        if (left <= LOOK_NANOS) throw new TimeoutException("it has not answered in time");
      } catch (ExecutionException end) {
        throw (IOException) end.getCause();
      }
    }
  }

  /** Why there are no answers any more; null while there are. */
  IOException end() {
    return end == null && !process.isAlive() ? closed() : end;
  }

  void kill() {
    process.destroyForcibly();
  }

  /** What it answers to a text. */
  byte[] ask(String text) {
    int number = numbers.incrementAndGet();
    CompletableFuture<byte[]> answer = new CompletableFuture<>();
    waiting.put(number, answer);
    try {
      IOException known = end();
      if (known != null) throw known;
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      synchronized (questions) {
        questions.writeInt(number);
        questions.writeInt(bytes.length);
        questions.write(bytes);
        questions.flush();
      }
      return await(answer, Long.MAX_VALUE);
    } catch (Exception problem) {
      throw new IllegalStateException("the planner does not answer", problem);
    } finally {
      waiting.remove(number);
    }
  }

  /** Hands answers to those that wait for them, until there are no more. */
  private void read(DataInputStream answers) {
    try {
      byte[] first = new byte[SIGN.length];
      answers.readFully(first);
      if (!Arrays.equals(first, SIGN))
        throw new IOException("its first bytes are not those of a planner");
      sign.complete(first);
      while (true) {
        int number = answers.readInt();
        int length = answers.readInt();
        if (length < -1 || length > limit) {
          throw new IOException(
              "an answer has " + length + " bytes (accepted: up to " + limit
              + ", a fourth of the driver's memory)");
        }
        byte[] answer = null;
        if (length >= 0) {
          answer = new byte[length];
          answers.readFully(answer);
        }
        CompletableFuture<byte[]> asked = waiting.get(number);
        if (asked != null) asked.complete(answer);
      }
    } catch (EOFException cut) {
      fail(closed());
    } catch (IOException problem) {
      fail(problem);
    } catch (Throwable problem) { // there may be no memory for an answer
      fail(new IOException(problem));
    }
  }

  /** Lets nobody wait any more. */
  private void fail(IOException why) {
    end = why;
    kill();
    sign.completeExceptionally(why);
    waiting.values().forEach(each -> each.completeExceptionally(why));
  }

  private IOException closed() {
    try {
      if (process.waitFor(1L, TimeUnit.SECONDS)) {
        return new EOFException("its process has ended with exit code " + process.exitValue());
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
    return new EOFException("it has closed its output");
  }
}
