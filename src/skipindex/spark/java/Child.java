package skipindex;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * The planner as a process of Python, which is asked through its standard input and output.
 *
 * It ends when its input ends, so with this JVM, however that ends. A question is its number,
 * that of the function, and a text; an answer has the number of the question. All numbers are
 * of four bytes, and a text comes after the number of its bytes, which is -1 for none.
 */
final class Child {
  /** The number of what it says without being asked: what the rules need to know. */
  private static final int HELLO = 0;

  private final Process process;
  private final DataOutputStream questions;
  private final AtomicInteger numbers = new AtomicInteger(HELLO);
  private final Map<Integer, CompletableFuture<byte[]>> waiting = new ConcurrentHashMap<>();
  private final CompletableFuture<byte[]> hello = new CompletableFuture<>();
  private volatile boolean hasEnded;

  Child(String... command) throws IOException {
    waiting.put(HELLO, hello);
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    questions = new DataOutputStream(process.getOutputStream());
    Thread reader = new Thread(new Runnable() {
      @Override
      public void run() {
        read(new DataInputStream(process.getInputStream()));
      }
    }, "skipindex-answers");
    reader.setDaemon(true);
    reader.start();
  }

  /** The name of the folder of indexes, and the settings that a question tells, by lines. */
  String[] hello(long seconds) throws Exception {
    String text = new String((byte[]) hello.get(seconds, TimeUnit.SECONDS), StandardCharsets.UTF_8);
    return text.split("\n", 2);
  }

  boolean isAlive() {
    return !hasEnded;
  }

  void end() {
    process.destroy();
  }

  /** One of its functions of a text. */
  @SuppressWarnings({"rawtypes", "unchecked"}) // a function of any object is one of a text
  Function<String, Object> function(final int number) {
    return (Function) new Function<Object, Object>() { // Janino makes no bridge from another one
      @Override
      public Object apply(Object text) {
        return ask(number, (String) text);
      }
    };
  }

  private byte[] ask(int function, String text) {
    int number = numbers.incrementAndGet();
    CompletableFuture<byte[]> answer = new CompletableFuture<>();
    waiting.put(number, answer);
    try {
      if (hasEnded) throw new EOFException("the planner has ended");
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      synchronized (questions) {
        questions.writeInt(number);
        questions.writeInt(function);
        questions.writeInt(bytes.length);
        questions.write(bytes);
        questions.flush();
      }
      return (byte[]) answer.get();
    } catch (Exception problem) {
      throw new IllegalStateException("the planner does not answer", problem);
    } finally {
      waiting.remove(number);
    }
  }

  /** Hands answers to those that wait for them, until there are no more. */
  private void read(DataInputStream answers) {
    try {
      while (true) {
        int number = answers.readInt();
        int length = answers.readInt();
        byte[] answer = null;
        if (length >= 0) {
          answer = new byte[length];
          answers.readFully(answer);
        }
        CompletableFuture<byte[]> asked = (CompletableFuture<byte[]>) waiting.get(number);
        if (asked != null) asked.complete(answer);
      }
    } catch (IOException end) {
      hasEnded = true;
      for (CompletableFuture<byte[]> each : waiting.values()) each.completeExceptionally(end);
    }
  }
}
