package skipindex;

import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The folders that are tables: registered, or with an index folder, in them or in the sidecar.
 *
 * A store is asked once for each table that a query scans, however many partitions or files of
 * it are scanned, and again after a while. A local file system is always asked.
 */
class Roots {
  static final long MEMORY_MS = 30000L;
  static final int MAX_REMEMBERED = 4096;

  /** A scan of more folders that are not partitions of one another stays as it is. */
  static final int MAX_TOPS = 8;

  /** The setting that names the sidecar; sidecar.py has the same. */
  static final String SIDECAR = "spark.skipindex.sidecar";

  /** Characters of a table's name that its folder in the sidecar begins with. */
  private static final int LONGEST = 40;

  private final String indexFolder;
  private final Set<String> registered = ConcurrentHashMap.newKeySet();

  /** By index folder, when a store was asked, and whether it is there. */
  private final Map<Path, long[]> remembered = Collections.synchronizedMap(new Remembered());

  /** By the paths of a file index, for as long as there is one, their tops. */
  private final Map<Object, Map<Path, Path>> topsOf = Collections.synchronizedMap(
      new WeakHashMap<Object, Map<Path, Path>>());

  /** How often a store was asked. */
  volatile int lookups;

  private static final class Remembered extends LinkedHashMap<Path, long[]> {
    private static final long serialVersionUID = 1L;

    Remembered() {
      super(16, 0.75f, true); // in the order of use
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<Path, long[]> eldest) {
      return size() > MAX_REMEMBERED;
    }
  }

  Roots(String indexFolder) {
    this.indexFolder = indexFolder;
  }

  void register(Path root) {
    registered.add(name(root));
  }

  /**
   * The table that the paths of a scan lie in; null if there is none, or more than one.
   *
   * A path is that of the table, or of a partition or a file in it.
   *
   * location: of a table of the catalog; null for others. Only it is looked at, unless no
   *     path lies in it.
   * isDeclared: whether the scan tells what its folders are made of, so that it needs no index.
   */
  Path of(scala.collection.Seq<Path> paths, Path location, boolean isDeclared, Configuration conf)
      throws java.io.IOException {
    if (location != null && isAnyIn(paths, location)) {
      return isDeclared || isTable(location, conf) ? location : null;
    }
    Map<Path, Path> tops = tops(paths);
    if (tops.size() > MAX_TOPS) return null;
    Path found = null;
    for (Path top : tops.keySet()) {
      Path bottom = tops.get(top);
      Path table = between(bottom, top, conf);
      if (table == null && isDeclared && location == null) table = above(bottom);
      if (table == null) continue; // the files there are unknown, so they stay
      if (found != null) return null;
      found = table;
    }
    return found;
  }

  /** The tops of the paths, to what all paths below each share; too many are not all. */
  private Map<Path, Path> tops(scala.collection.Seq<Path> paths) {
    Map<Path, Path> tops = topsOf.get(paths);
    if (tops != null) return tops;
    tops = new LinkedHashMap<>();
    // The paths may be a linked list, which takes as long for the last one as for all.
    scala.collection.Iterator<Path> all = paths.iterator();
    while (all.hasNext() && tops.size() <= MAX_TOPS) {
      Path path = all.next();
      Path top = top(path);
      Path shared = tops.get(top);
      tops.put(top, shared == null ? path : shared(shared, path, top));
    }
    topsOf.put(paths, tops);
    return tops;
  }

  private static boolean isAnyIn(scala.collection.Seq<Path> paths, Path folder) {
    for (Path one : Scala.each(paths))
      if (isIn(one, folder)) return true;
    return false;
  }

  /** The first table on the way from a folder up to another. */
  private Path between(Path bottom, Path top, Configuration conf) throws java.io.IOException {
    Path path = bottom;
    while (!isTable(path, conf)) {
      if (path.equals(top)) return null;
      path = path.getParent();
    }
    return path;
  }

  /** The folder that a folder is a partition of; the folder itself if it is none. */
  private static Path above(Path folder) {
    Path path = folder;
    while (isPartition(path) && path.getParent() != null) path = path.getParent();
    return path;
  }

  /** The folder that a path is a partition or a file of; the path itself if it is neither. */
  private static Path top(Path scanned) {
    Path path = scanned;
    boolean isInside = isPartition(path) || isFile(path);
    while (isInside && path.getParent() != null) {
      path = path.getParent();
      isInside = isPartition(path);
    }
    return path;
  }

  private static boolean isPartition(Path path) {
    return path.getName().indexOf('=') > 0;
  }

  private static boolean isFile(Path path) {
    return path.getName().indexOf('.') > 0;
  }

  /** The deepest folder that two paths below a top lie in, or are. */
  private static Path shared(Path one, Path other, Path top) {
    Path shared = one;
    while (!shared.equals(top) && !isIn(other, shared)) shared = shared.getParent();
    return shared;
  }

  private boolean isTable(Path path, Configuration conf) throws java.io.IOException {
    if (registered.contains(name(path))) return true;
    if (isThere(new Path(path, indexFolder), conf)) return true;
    String sidecar = sidecar();
    if (sidecar == null) return false;
    return isThere(new Path(new Path(sidecar, folderInSidecar(path)), indexFolder), conf);
  }

  /** The folder for indexes of tables that have none in their own; null if there is none. */
  static String sidecar() {
    String set = SQLConf.get().getConfString(SIDECAR, "");
    return set.isEmpty() ? null : set;
  }

  /** The name of the folder that a table has in a sidecar; sidecar.py makes the same. */
  static String folderInSidecar(Path table) {
    String uri = name(table);
    String name = uri.replaceAll("/+$", "");
    name = name.substring(name.lastIndexOf('/') + 1).replaceAll("[^A-Za-z0-9._-]", "_");
    try {
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(
          uri.getBytes(StandardCharsets.UTF_8));
      String digits = String.format("%064x", new Object[] {new BigInteger(1, hash)});
      return name.substring(0, Math.min(name.length(), LONGEST)) + "-" + digits.substring(0, 16);
    } catch (NoSuchAlgorithmException never) { // every JVM has it
      throw new IllegalStateException(never);
    }
  }

  private boolean isThere(Path folder, Configuration conf) throws java.io.IOException {
    String scheme = folder.toUri().getScheme();
    if (scheme == null || scheme.equals("file")) {
      return new java.io.File(folder.toUri().getPath()).isDirectory();
    }
    long[] known = remembered.get(folder);
    long now = System.currentTimeMillis();
    if (known == null || now - known[0] > MEMORY_MS) {
      lookups++;
      // A store that fails is asked as seldom as one that answers; there is no table then.
      known = new long[] {now, 0L};
      remembered.put(folder, known);
      boolean isThere = folder.getFileSystem(conf).exists(folder);
      known = new long[] {now, isThere ? 1L : 0L};
      remembered.put(folder, known);
    }
    return known[1] == 1L;
  }

  /** Whether a path is a folder, or lies in it. */
  static boolean isIn(Path path, Path folder) {
    if (!isSamePlace(path.toUri(), folder.toUri())) return false;
    String text = path.toUri().getPath();
    return text.equals(folder.toUri().getPath()) || text.startsWith(prefix(folder));
  }

  /** Whether two files or folders are in one file system, by their names. */
  static boolean isSamePlace(URI one, URI other) {
    return scheme(one).equals(scheme(other)) && authority(one).equals(authority(other));
  }

  private static String scheme(URI uri) {
    String scheme = uri.getScheme();
    if (scheme == null) return "file";
    return scheme.equals("s3a") || scheme.equals("s3n") ? "s3" : scheme;
  }

  private static String authority(URI uri) {
    return uri.getAuthority() == null ? "" : uri.getAuthority();
  }

  private static String name(Path path) {
    return store(path.toUri()) + prefix(path);
  }

  /** The name of the file system that a path is in. */
  static String store(URI uri) {
    return scheme(uri) + "://" + authority(uri);
  }

  /** What the paths of all files in a folder begin with. */
  static String prefix(Path folder) {
    String path = folder.toUri().getPath();
    return path.endsWith("/") ? path : path + "/";
  }
}
