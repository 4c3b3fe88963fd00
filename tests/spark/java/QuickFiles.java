import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Local files whose permissions are set without a process of {@code chmod} for each. */
public final class QuickFiles extends LocalFileSystem {
  /** What Hadoop makes for {@code fs.file.impl}. */
  public QuickFiles() {
    super(new Raw());
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission wanted) throws IOException {
      String letters =
          wanted.getUserAction().SYMBOL
              + wanted.getGroupAction().SYMBOL
              + wanted.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(letters));
    }
  }
}
