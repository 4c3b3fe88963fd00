package skipindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.stream.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.execution.datasources.*;
import scala.collection.immutable.Seq;

/** The files of a table as Python listed them, by path below the root. */
public class Listing {
  final long number;
  final Map<String, Integer> positions = new HashMap<>();
  final long[] sizes;
  final long[] millis;

  /** How many files are judged; after them come those that were rewritten. */
  final int judged;

  final Rewrites rewrites;

  Listing(long number, byte[] packed) {
    this.number = number;
    ByteBuffer buffer = ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN);
    judged = (int) buffer.getLong();
    int n = judged + (int) buffer.getLong();
    sizes = new long[n];
    millis = new long[n];
    for (int i = 0; i < n; i++) sizes[i] = buffer.getLong();
    for (int i = 0; i < n; i++) millis[i] = buffer.getLong();
    int[] rewriteOf = new int[n];
    for (int i = 0; i < n; i++) rewriteOf[i] = (int) buffer.getLong();
    String[] paths = new String[n];
    rewrites = new Rewrites(this, rewriteOf, paths);
    int start = buffer.position();
    int next = 0;
    for (int end = start; end < packed.length; end++) {
      if (packed[end] != 0) continue;
      String path = new String(packed, start, end - start, StandardCharsets.UTF_8);
      if (rewriteOf[next] >= 0) paths[next] = path;
      positions.put(path, next++);
      start = end + 1;
    }
  }

  /** The position of a file of the same size and time; negative if there is none. */
  int find(FileStatus file, Path root) {
    int i = position(file, root);
    boolean isSame = i >= 0 && sizes[i] == file.getLen() && millis[i] == file.getModificationTime();
    return isSame ? i : -1;
  }

  /** The position of a file, whatever it holds; negative if there is none. */
  int position(FileStatus file, Path root) {
    String path = below(file.getPath(), root);
    return path == null ? -1 : positions.getOrDefault(path, -1);
  }

  /** The path of a file below a folder; null if it is not there. */
  static String below(Path file, Path root) {
    if (!Roots.isSamePlace(file.toUri(), root.toUri())) return null;
    String path = file.toUri().getPath();
    String prefix = Roots.prefix(root);
    return path.startsWith(prefix) ? path.substring(prefix.length()) : null;
  }

  /** Whether a file is now what it was, as far as that costs no request to a store. */
  static boolean isNow(FileStatus file) {
    if (!"file".equals(file.getPath().toUri().getScheme())) return true;
    java.io.File now = new java.io.File(file.getPath().toUri().getPath());
    return now.length() == file.getLen() && now.lastModified() == file.getModificationTime();
  }

  /** All files of what Spark lists. */
  static Stream<FileStatus> files(scala.collection.Seq<PartitionDirectory> directories) {
    return Scala.<PartitionDirectory>stream(directories)
        .flatMap(directory -> Scala.<FileStatusWithMetadata>stream(directory.files()))
        .map(FileStatusWithMetadata::fileStatus);
  }

  /** For each file 1, if Spark lists it once, with the same size and time, and else 0. */
  String listed(Path root, Seq<PartitionDirectory> directories) {
    var seen = new int[judged];
    files(directories).forEach(file -> {
      int i = find(file, root);
      if (i >= 0 && i < judged) seen[i]++;
    });
    return IntStream.of(seen).mapToObj(n -> n == 1 ? "1" : "0").collect(Collectors.joining());
  }

  /**
   * Which files of a listing are ruled out.
   *
   * number: of the question.
   * listing: null if no file is ruled out.
   */
  static class Answer {
    private static final String ENOUGH = "enough";
    private static final String RANGES = "ranges";
    final long number;
    final Listing listing;
    final byte[] bits;
    final Path root;

    /** By file, the ranges of bytes that are needed, where these are not all. */
    private final Map<Integer, long[]> ranges = new HashMap<>();

    /** Whether the files that are not marked are enough, whatever others hold. */
    private final boolean isEnough;

    Answer(long number, Listing listing, byte[] bits, Path root) {
      this.number = number;
      this.listing = listing;
      this.bits = bits;
      this.root = root;
      this.isEnough = listing != null && begins(ENOUGH) && bits.length == start() + ENOUGH.length();
      int end = listing == null || !begins(RANGES) ? 0 : start() + RANGES.length();
      if (end == 0) return;
      ByteBuffer buffer = ByteBuffer.wrap(bits).order(ByteOrder.LITTLE_ENDIAN);
      buffer.position(end);
      for (int left = buffer.getInt(); left > 0; left--) {
        long[] places = new long[buffer.getInt(buffer.position() + 4)];
        ranges.put(buffer.getInt(), places);
        buffer.getInt();
        for (int i = 0; i < places.length; i++) places[i] = buffer.getLong();
      }
    }

    /** Whether the answer to a question is that nothing is ruled out. */
    boolean isNone() {
      return listing == null;
    }

    private boolean begins(String what) {
      int end = Math.min(bits.length, start() + what.length());
      return what.equals(new String(bits, start(), end - start(), StandardCharsets.US_ASCII));
    }

    /** The file as it is to be read, if some of its rows are needed. */
    FileStatusWithMetadata narrowed(FileStatusWithMetadata file) {
      long[] known = ranges.get(listing.find(file.fileStatus(), root));
      return known == null ? file : RowGroups.in(file, known);
    }

    /** Whether none of the rows of this very file is needed, as it was judged. */
    boolean rulesOut(FileStatus file) {
      int i = listing.find(file, root);
      return i < 0 ? isEnough : isMarked(i);
    }

    /** Where that begins which follows the marks. */
    int start() {
      return 8 + (listing.judged + 7) / 8;
    }

    boolean isMarked(int i) {
      return i < listing.judged && (bits[8 + (i >> 3)] >> (i & 7) & 1) != 0;
    }
  }

  /**
   * What an answer leaves to read of what Spark lists.
   *
   * It is null if the answer is about rewritten files, and Spark lists others than these.
   */
  static Rest rest(Answer answer, Seq<PartitionDirectory> all, Scanned scanned) {
    var directories = new ArrayList<PartitionDirectory>();
    int listed = 0;
    int read = 0;
    int unknown = 0;
    long bytes = 0L;
    boolean isRewritten = !answer.isNone() && !answer.listing.rewrites.isEmpty();
    for (PartitionDirectory directory : Scala.each(all)) {
      boolean isInPlace = scanned.isInPlace(directory);
      if (isRewritten) directory = answer.listing.rewrites.in(directory, isInPlace, answer.root);
      if (directory == null) return null;
      var files = new ArrayList<FileStatusWithMetadata>();
      int n = 0;
      for (FileStatusWithMetadata file : Scala.each(directory.files())) {
        n++;
        boolean isJudged = !answer.isNone() && isInPlace;
        if (isJudged && answer.rulesOut(file.fileStatus())) continue;
        files.add(isJudged ? answer.narrowed(file) : file);
        bytes += file.fileStatus().getLen();
        if (!answer.isNone() && answer.listing.find(file.fileStatus(), answer.root) < 0) unknown++;
      }
      listed += n;
      read += files.size();
      if (Scala.list(directory.files()).equals(files))
        directories.add(directory);
      else if (!files.isEmpty()) {
        directories.add(new PartitionDirectory(directory.values(), Scala.listed(files)));
      }
    }
    return new Rest(answer, Scala.listed(directories), listed, read, unknown, bytes);
  }

  /**
   * What a scan reads.
   *
   * listed, read, unknown: how many files Spark lists, how many of these are read, and how
   *     many of the read ones the planner does not know.
   */
  record Rest(
      Answer answer, Seq<PartitionDirectory> directories, int listed, int read, int unknown,
      long bytes) {}

  /** An answer that counts later than it was given. */
  static class Earlier extends Answer {
    private static final long MAX_NANOS = 60L * 1000000000L;
    private final long start = System.nanoTime();

    Earlier(Answer answer) {
      super(answer.number, answer.listing, answer.bits, answer.root);
    }

    /** Whether the file is now what it was, as far as that costs no request to a store. */
    boolean rulesOut(FileStatus file) {
      if (!super.rulesOut(file)) return false;
      boolean isLocal = "file".equals(file.getPath().toUri().getScheme());
      return isLocal ? isNow(file) : System.nanoTime() - start < MAX_NANOS;
    }
  }

  /** Files whose rows a plan has otherwise; they stay what they were when it was made. */
  static class Covered extends Answer {
    Covered(Answer answer) {
      super(answer.number, answer.listing, answer.bits, answer.root);
    }

    /** Even if it has changed: its former rows are in the plan. */
    boolean rulesOut(FileStatus file) {
      int i = listing.position(file, root);
      return i >= 0 && isMarked(i);
    }
  }
}
