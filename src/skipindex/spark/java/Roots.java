package skipindex;

import java.net.URI;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.codec.digest.DigestUtils;
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

  /** By index folder. */
  @SuppressWarnings("serial")
  private final Map<Path, Look> remembered = Collections.synchronizedMap(
      new LinkedHashMap<>(16, 0.75f, true) { // in the order of use
        @Override
        protected boolean removeEldestEntry(Map.Entry<Path, Look> eldest) {
          return size() > MAX_REMEMBERED;
        }
      });

  /** By the paths of a file index, for as long as there is one, their tops. */
  private final Map<Object, Map<Path, Path>> topsOf = Collections.synchronizedMap(
      new WeakHashMap<>());

  /** How often a store was asked. */
  volatile int lookups;

  /** When a store was asked, in milliseconds, and what it said. */
  private record Look(long time, boolean isThere) {}

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
    if (location != null && Scala.<Path>stream(paths).anyMatch(one -> isIn(one, location))) {
      return isDeclared || isTable(location, conf) ? location : null;
    }
    Map<Path, Path> tops = tops(paths);
    if (tops.size() > MAX_TOPS) return null;
    Path found = null;
    for (var each : tops.entrySet()) {
      Path bottom = each.getValue();
      Path table = between(bottom, each.getKey(), conf);
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
    for (Path path : Scala.<Path>each(paths)) {
      Path top = top(path);
      tops.merge(top, path, (one, other) -> shared(one, other, top));
      if (tops.size() > MAX_TOPS) break;
    }
    topsOf.put(paths, tops);
    return tops;
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
    boolean isFile = scanned.getName().indexOf('.') > 0 && scanned.getParent() != null;
    return above(isFile ? scanned.getParent() : scanned);
  }

  private static boolean isPartition(Path path) {
    return path.getName().indexOf('=') > 0;
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
    String begin = name.substring(0, Math.min(name.length(), LONGEST));
    return begin + "-" + DigestUtils.sha256Hex(uri).substring(0, 16);
  }

  private boolean isThere(Path folder, Configuration conf) throws java.io.IOException {
    String scheme = folder.toUri().getScheme();
    if (scheme == null || scheme.equals("file")) {
      return new java.io.File(folder.toUri().getPath()).isDirectory();
    }
    Look known = remembered.get(folder);
    long now = System.currentTimeMillis();
    if (known == null || now - known.time > MEMORY_MS) {
      lookups++;
      // A store that fails is asked as seldom as one that answers; there is no table then.
      remembered.put(folder, new Look(now, false));
      known = new Look(now, folder.getFileSystem(conf).exists(folder));
      remembered.put(folder, known);
    }
    return known.isThere;
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
