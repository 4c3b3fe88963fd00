package skipindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * The planner, which runs in Python: what it is asked, and which files it rules out.
 *
 * Whatever goes wrong here, no file is ruled out.
 */
public class PlannerCalls {
    static final String ENABLED = "skipindex.enabled";
    static final long MEMORY_MS = 30000L;

    final Function plan;
    final Function files;
    final Function usesOf;
    final Function failed;
    final String indexFolder;
    final String[] settings;
    final ConcurrentHashMap listings = new ConcurrentHashMap();
    final ConcurrentHashMap registered = new ConcurrentHashMap();
    final ConcurrentHashMap elsewhere = new ConcurrentHashMap();
    volatile boolean isOn = true;

    /**
     * plan: a question as JSON to the number of a listing (8 bytes) and one bit for each
     *     of its files, set if the file is ruled out; or to null, where none is. Asked for
     *     listing 0, it gives the number alone.
     * files: the number of a listing, as text, to its files.
     * usesOf: a folder, a column and the side that it is joined with, as JSON, to letters
     *     that say what leaves out files; or to null, if nothing does.
     * failed: told why a question could not be asked.
     * indexFolder: the name of the folder that makes a folder a table.
     * settings: names of the settings that each question tells the planner, by lines.
     */
    PlannerCalls(
            Function plan,
            Function files,
            Function usesOf,
            Function failed,
            String indexFolder,
            String settings) {
        this.plan = plan;
        this.files = files;
        this.usesOf = usesOf;
        this.failed = failed;
        this.indexFolder = indexFolder;
        this.settings = settings.split("\n");
    }

    public void register(String root) {
        registered.put(new Path(root).toUri().getPath(), Boolean.TRUE);
    }

    /** Whether files are skipped at all, in queries that are defined already too. */
    public void setOn(boolean isOn) {
        this.isOn = isOn;
    }

    boolean isEnabled() {
        return isOn && "true".equalsIgnoreCase(SQLConf.get().getConfString(ENABLED, "true"));
    }

    /** The files of a table as Python listed them, by path below the root. */
    static class Listing {
        final HashMap positions = new HashMap();
        final long[] sizes;
        final long[] millis;

        Listing(byte[] packed) {
            ByteBuffer buffer = ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN);
            int n = (int) buffer.getLong();
            sizes = new long[n];
            millis = new long[n];
            for (int i = 0; i < n; i++) sizes[i] = buffer.getLong();
            for (int i = 0; i < n; i++) millis[i] = buffer.getLong();
            int start = buffer.position();
            int next = 0;
            for (int end = start; end < packed.length; end++) {
                if (packed[end] != 0) continue;
                String path = new String(packed, start, end - start, StandardCharsets.UTF_8);
                positions.put(path, Integer.valueOf(next++));
                start = end + 1;
            }
        }

        /** The position of a file of the same size and time; negative if there is none. */
        int find(FileStatus file, String below) {
            int i = position(file, below);
            if (i < 0) return -1;
            boolean isSame = sizes[i] == file.getLen() && millis[i] == file.getModificationTime();
            return isSame ? i : -1;
        }

        /** The position of a file, whatever it holds; negative if there is none. */
        int position(FileStatus file, String below) {
            String path = file.getPath().toUri().getPath();
            if (!path.startsWith(below)) return -1;
            Integer found = (Integer) positions.get(path.substring(below.length()));
            return found == null ? -1 : found.intValue();
        }
    }

    /** Which files of a listing are ruled out. */
    static class Answer {
        final Listing listing;
        final byte[] bits;
        final String below;

        Answer(Listing listing, byte[] bits, Path root) {
            this.listing = listing;
            this.bits = bits;
            this.below = prefix(root);
        }

        /** Whether this is the very file that was judged, and none of its rows is needed. */
        boolean rulesOut(FileStatus file) {
            int i = listing.find(file, below);
            return i >= 0 && isMarked(i);
        }

        boolean isMarked(int i) {
            return (bits[8 + (i >> 3)] >> (i & 7) & 1) != 0;
        }
    }

    /** Files whose rows a plan has otherwise; they stay what they were when it was made. */
    static class Covered extends Answer {
        Covered(Answer answer, Path root) {
            super(answer.listing, answer.bits, root);
        }

        /** Even if it has changed: its former rows are in the plan. */
        boolean rulesOut(FileStatus file) {
            int i = listing.position(file, below);
            return i >= 0 && isMarked(i);
        }

        /** What follows the marks. */
        String text() {
            int start = 8 + (listing.sizes.length + 7) / 8;
            return new String(bits, start, bits.length - start, StandardCharsets.US_ASCII);
        }
    }

    private static String prefix(Path root) {
        return root.toUri().getPath() + "/";
    }

    /** The answer to a question; null if no file is ruled out. */
    Answer ask(String question, Path root) {
        try {
            byte[] bits = (byte[]) plan.apply(question);
            if (bits == null) return null;
            long number = ByteBuffer.wrap(bits).order(ByteOrder.LITTLE_ENDIAN).getLong();
            return new Answer(listing(root.toString(), number), bits, root);
        } catch (Throwable problem) {
            report(problem);
            return null;
        }
    }

    /**
     * The members of a question that name a listing of the planner's, and its files that
     * Spark lists too: once, and with the same size and time. Null if there is no listing.
     *
     * question: the one to which the planner answers with the number of a listing alone.
     */
    String listed(String question, Path root, SEQ directories) {
        byte[] told = (byte[]) plan.apply(question);
        if (told == null) return null;
        long number = ByteBuffer.wrap(told).order(ByteOrder.LITTLE_ENDIAN).getLong();
        Listing listing = listing(root.toString(), number);
        byte[] seen = new byte[listing.sizes.length];
        String below = prefix(root);
        scala.collection.Iterator i = directories.iterator();
        while (i.hasNext()) {
            scala.collection.Iterator j = ((PartitionDirectory) i.next()).files().iterator();
            while (j.hasNext()) {
                FileStatus file = ((FileStatusWithMetadata) j.next()).fileStatus();
                int found = listing.find(file, below);
                if (found >= 0) seen[found] += seen[found] < 2 ? 1 : 0;
            }
        }
        StringBuilder text = new StringBuilder(",\"listing\":").append(number);
        text.append(",\"listed\":\"");
        for (int k = 0; k < seen.length; k++) text.append(seen[k] == 1 ? '1' : '0');
        return text.append('"').toString();
    }

    /** Of each table the newest listing alone is remembered. */
    private Listing listing(String root, long number) {
        Object[] known = (Object[]) listings.get(root);
        if (known != null && ((Long) known[0]).longValue() == number) return (Listing) known[1];
        Listing listing = new Listing((byte[]) files.apply(Long.toString(number)));
        listings.put(root, new Object[] {Long.valueOf(number), listing});
        return listing;
    }

    void report(Throwable problem) {
        try {
            failed.apply(problem.toString());
        } catch (Throwable gone) {
            // Python has ended, or is about to: no file is ruled out any more.
        }
    }

    /**
     * The table that a path of a scan lies in: registered, or with an index folder.
     *
     * A path is that of the table, or of a partition or a file in it.
     */
    Path tableOf(Path scanned, Configuration conf) throws java.io.IOException {
        for (Path path = scanned; path != null; path = path.getParent()) {
            if (registered.containsKey(path.toUri().getPath()) || hasIndexes(path, conf)) return path;
            boolean isInside = path.getName().indexOf('=') > 0 || path == scanned && isFile(path);
            if (!isInside) return null;
        }
        return null;
    }

    private static boolean isFile(Path path) {
        return path.getName().indexOf('.') > 0;
    }

    /** A store is asked again after a while, a local file system always. */
    private boolean hasIndexes(Path path, Configuration conf) throws java.io.IOException {
        String scheme = path.toUri().getScheme();
        if (scheme == null || scheme.equals("file")) {
            return new java.io.File(path.toUri().getPath(), indexFolder).isDirectory();
        }
        Object[] known = (Object[]) elsewhere.get(path);
        long now = System.currentTimeMillis();
        if (known == null || now - ((Long) known[0]).longValue() > MEMORY_MS) {
            boolean there = path.getFileSystem(conf).exists(new Path(path, indexFolder));
            known = new Object[] {Long.valueOf(now), Boolean.valueOf(there)};
            elsewhere.put(path, known);
        }
        return ((Boolean) known[1]).booleanValue();
    }

    /**
     * What of the other side of a join can leave out files: "k" for the keys that it leaves,
     * "a" for its conditions, "ak" for both, and nothing.
     */
    String usesOf(Path root, JoinKeys join) {
        StringBuilder text = place(root);
        text.append(",\"column\":");
        quote(text, join.column);
        text.append(",\"dimension\":").append(join.dimension);
        byte[] uses = (byte[]) usesOf.apply(text.append('}').toString());
        return uses == null ? "" : new String(uses, StandardCharsets.US_ASCII);
    }

    /** The first members of an object that tells a folder. */
    static StringBuilder place(Path root) {
        StringBuilder text = new StringBuilder("{\"root\":");
        quote(text, root.toUri().getPath());
        text.append(",\"scheme\":");
        quote(text, root.toUri().getScheme());
        text.append(",\"authority\":");
        quote(text, root.toUri().getAuthority());
        return text;
    }

    /**
     * All that an answer depends on: a line of JSON, and then the conjuncts as JSON.
     *
     * more: members of the object, each after a comma.
     */
    String question(
            Path root,
            boolean isEstimate,
            boolean isCatalogTable,
            StructType data,
            StructType partitions,
            scala.collection.immutable.Map options,
            SQLConf reader,
            String keys,
            String more,
            String conjuncts) {
        StringBuilder text = place(root);
        text.append(",\"is_estimate\":").append(isEstimate);
        text.append(",\"is_catalog_table\":").append(isCatalogTable);
        text.append(",\"data\":");
        quote(text, data.json());
        text.append(",\"partitions\":");
        quote(text, partitions.json());
        text.append(",\"settings\":{");
        SQLConf conf = SQLConf.get();
        for (int i = 0; i < settings.length; i++) {
            if (i > 0) text.append(',');
            quote(text, settings[i]);
            text.append(':');
            quote(text, setting(conf, settings[i]));
        }
        text.append("},\"reader\":{");
        addOthers(text, reader);
        text.append('}');
        addOptions(text, options);
        text.append(",\"keys\":[").append(keys).append(']').append(more);
        return text.append("}\n").append(conjuncts).toString();
    }

    /** The settings of the session that defined a relation, where it has others. */
    void addOthers(StringBuilder text, SQLConf reader) {
        SQLConf conf = SQLConf.get();
        boolean isFirst = true;
        for (int i = 0; i < settings.length; i++) {
            String value = setting(reader, settings[i]);
            if (java.util.Objects.equals(value, setting(conf, settings[i]))) continue;
            if (!isFirst) text.append(',');
            isFirst = false;
            quote(text, settings[i]);
            text.append(':');
            quote(text, value);
        }
    }

    /** The options that say how times are read. */
    static void addOptions(StringBuilder text, scala.collection.immutable.Map options) {
        text.append(",\"options\":{");
        boolean isFirst = true;
        scala.collection.Iterator pairs = options.iterator();
        while (pairs.hasNext()) {
            scala.Tuple2 pair = (scala.Tuple2) pairs.next();
            String name = ((String) pair._1()).toLowerCase(java.util.Locale.ROOT);
            if (!name.endsWith("rebasemode")) continue;
            if (!isFirst) text.append(',');
            isFirst = false;
            quote(text, name);
            text.append(':');
            quote(text, (String) pair._2());
        }
        text.append('}');
    }

    /** The value, or Spark's default; null if Spark does not know the setting. */
    private static String setting(SQLConf conf, String name) {
        try {
            return conf.getConfString(name);
        } catch (java.util.NoSuchElementException unknown) {
            return null;
        }
    }

    static void quote(StringBuilder text, String value) {
        if (value == null) {
            text.append("null");
            return;
        }
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') text.append('\\');
            if (c < ' ') text.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
            else text.append(c);
        }
        text.append('"');
    }
}
