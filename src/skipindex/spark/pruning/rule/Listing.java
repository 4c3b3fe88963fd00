package skipindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

/** The files of a table as Python listed them, by path below the root. */
public class Listing {
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

    /** How often Spark lists each file with the same size and time; 2 is "more than once". */
    byte[] seen(Path root, SEQ directories) {
        byte[] seen = new byte[sizes.length];
        String below = prefix(root);
        scala.collection.Iterator i = directories.iterator();
        while (i.hasNext()) {
            scala.collection.Iterator j = ((PartitionDirectory) i.next()).files().iterator();
            while (j.hasNext()) {
                int found = find(((FileStatusWithMetadata) j.next()).fileStatus(), below);
                if (found >= 0) seen[found] += seen[found] < 2 ? 1 : 0;
            }
        }
        return seen;
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

    static String prefix(Path root) {
        return root.toUri().getPath() + "/";
    }
}
