package skipindex;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

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
      Integer rewrite = Integer.valueOf(rewriteOf[i]);
      if (!files.containsKey(rewrite)) files.put(rewrite, new ArrayList<Integer>());
      files.get(rewrite).add(Integer.valueOf(i));
    }
  }

  boolean isEmpty() {
    return files.isEmpty();
  }

  /** A directory with hidden files for former ones; null if they do not stand for them. */
  PartitionDirectory in(PartitionDirectory directory, boolean isInPlace, Path root) {
    List<FileStatusWithMetadata> left = new ArrayList<>();
    Set<Integer> former = new HashSet<>();
    FileStatusWithMetadata model = null;
    for (FileStatusWithMetadata file : Scala.each(directory.files())) {
      int i = listing.find(file.fileStatus(), root);
      if (i < listing.judged) {
        left.add(file);
        continue;
      }
      boolean isFirst = former.add(Integer.valueOf(i));
      if (!isFirst || !isInPlace || !Listing.isNow(file.fileStatus())) return null;
      model = file;
    }
    Set<Integer> found = new HashSet<>();
    for (Integer i : former) found.add(Integer.valueOf(rewriteOf[i.intValue()]));
    for (Integer rewrite : found) {
      for (Integer i : files.get(rewrite)) {
        if (i.intValue() >= listing.judged) {
          if (!former.contains(i)) return null;
          continue;
        }
        FileStatus hidden = status(i.intValue(), model.fileStatus(), root);
        if (!Listing.isNow(hidden)) return null;
        left.add(new FileStatusWithMetadata(hidden, model.metadata()));
      }
    }
    return former.isEmpty() ? directory
                            : new PartitionDirectory(directory.values(), Scala.listed(left));
  }

  private FileStatus status(int i, FileStatus model, Path root) {
    java.net.URI uri = model.getPath().toUri();
    Path path = new Path(uri.getScheme(), uri.getAuthority(), Roots.prefix(root) + paths[i]);
    return new FileStatus(
        listing.sizes[i],
        false,
        model.getReplication(),
        model.getBlockSize(),
        listing.millis[i],
        path);
  }
}
