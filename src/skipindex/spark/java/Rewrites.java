package skipindex;

import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.execution.datasources.*;

/**
 * Hidden files that have the rows of visible ones, which Spark lists until a vacuum.
 *
 * They stand for these where Spark lists each former file of a rewrite once, as it was, and all
 * of them in one partition.
 */
class Rewrites {
  private final Listing listing;

  /** By rewrite, the positions of its files: those after the judged ones are the former. */
  private final TreeMap<Integer, List<Integer>> files = new TreeMap<>();

  /** By position; -1 is none. */
  private final int[] rewriteOf;

  private final String[] paths;

  Rewrites(Listing listing, int[] rewriteOf, String[] paths) {
    this.listing = listing;
    this.rewriteOf = rewriteOf;
    this.paths = paths;
    for (int i = 0; i < rewriteOf.length; i++) {
      if (rewriteOf[i] < 0) continue;
      files.computeIfAbsent(rewriteOf[i], any -> new ArrayList<>()).add(i);
    }
  }

  boolean isEmpty() {
    return files.isEmpty();
  }

  /** A directory with hidden files for former ones; null if they do not stand for them. */
  PartitionDirectory in(PartitionDirectory directory, boolean isInPlace, Path root) {
    var left = new ArrayList<FileStatusWithMetadata>();
    var former = new TreeSet<Integer>();
    FileStatusWithMetadata model = null;
    for (FileStatusWithMetadata file : Scala.each(directory.files())) {
      int i = listing.find(file.fileStatus(), root);
      if (i < listing.judged) {
        left.add(file);
        continue;
      }
      if (!former.add(i) || !isInPlace || !Listing.isNow(file.fileStatus())) return null;
      model = file;
    }
    if (former.isEmpty()) return directory;
    for (int rewrite : former.stream().map(i -> rewriteOf[i]).distinct().toList()) {
      for (int i : files.get(rewrite)) {
        if (i >= listing.judged) {
          if (!former.contains(i)) return null;
          continue;
        }
        FileStatus hidden = hidden(i, model.fileStatus(), root);
        if (!Listing.isNow(hidden)) return null;
        left.add(new FileStatusWithMetadata(hidden, model.metadata()));
      }
    }
    return new PartitionDirectory(directory.values(), Scala.listed(left));
  }

  private FileStatus hidden(int i, FileStatus model, Path root) {
    var uri = model.getPath().toUri();
    var path = new Path(uri.getScheme(), uri.getAuthority(), Roots.prefix(root) + paths[i]);
    int copies = model.getReplication();
    long block = model.getBlockSize();
    return new FileStatus(listing.sizes[i], false, copies, block, listing.millis[i], path);
  }
}
