package skipindex;

import java.io.*;
import java.lang.invoke.*;
import java.lang.reflect.*;
import java.util.zip.ZipInputStream;

/**
 * Whether the classes of this jar link with the Spark of this JVM.
 *
 * They were compiled against another one, of the same family. A class is loaded and linked, and
 * whatever classes and members its constant pool names must be there, as must be all that
 * it is abstract in. The format is that of chapter 4 of the Java Virtual Machine Specification.
 */
public final class Links {
  private static final String END = ".class";
  private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
  private static final ClassLoader LOADER = Links.class.getClassLoader();

  private Links() {}

  /** What is missing first; null if nothing is. */
  public static String missing() {
    String name = null;
    var jar = Links.class.getProtectionDomain().getCodeSource().getLocation();
    try (var classes = new ZipInputStream(jar.openStream())) {
      for (var entry = classes.getNextEntry(); entry != null; entry = classes.getNextEntry()) {
        name = entry.getName();
        if (name.endsWith(END)) check(name, classes.readAllBytes());
      }
      return null;
    } catch (Exception | LinkageError problem) {
      return name + ": " + problem;
    }
  }

  private static void check(String name, byte[] body)
      throws IOException, ReflectiveOperationException {
    var dotted = name.substring(0, name.length() - END.length()).replace('/', '.');
    var type = Class.forName(dotted, true, LOADER);
    for (Method method : type.getMethods()) {
      int all = method.getModifiers() & ~type.getModifiers();
      if (Modifier.isAbstract(all)) throw new NoSuchMethodException("" + method);
    }
    checkMembers(new DataInputStream(new ByteArrayInputStream(body)));
  }

  /** Looks for the members that the constant pool names. */
  private static void checkMembers(DataInputStream in)
      throws IOException, ReflectiveOperationException {
    in.readLong(); // magic number and version
    int count = in.readUnsignedShort();
    var tags = new int[count];
    var texts = new String[count];
    var first = new int[count];
    var second = new int[count];
    for (int i = 1; i < count; i++) {
      tags[i] = in.readUnsignedByte();
      switch (tags[i]) {
        case 1 -> texts[i] = in.readUTF();
        case 3, 4 -> in.readInt();
        case 5, 6 -> { // takes two places
          in.readLong();
          i++;
        }
        case 7, 8, 16, 19, 20 -> first[i] = in.readUnsignedShort();
        case 15 -> in.skipBytes(3);
        default -> {
          first[i] = in.readUnsignedShort();
          second[i] = in.readUnsignedShort();
        }
      }
    }
    for (int i = 1; i < count; i++) {
      if (tags[i] == 7) classOf(texts[first[i]]);
      if (tags[i] < 9 || tags[i] > 11) continue;
      var owner = classOf(texts[first[first[i]]]);
      boolean isField = tags[i] == 9;
      if (!isField && !owner.isArray() && owner.isInterface() != (tags[i] == 11))
        throw new NoSuchMethodException(
            owner + " is no longer " + (tags[i] == 11 ? "an interface" : "a class"));
      var member = second[i];
      find(owner, texts[first[member]], texts[second[member]], isField);
    }
  }

  /** The class that a constant names, which may be one of arrays. */
  private static Class<?> classOf(String name) throws ClassNotFoundException {
    if (!name.startsWith("[")) return Class.forName(name.replace('/', '.'), false, LOADER);
    return MethodType.fromMethodDescriptorString("()" + name, LOADER).returnType();
  }

  /** As the JVM resolves it; that it may be protected, or static, is no concern here. */
  private static void find(Class<?> owner, String name, String descriptor, boolean isField)
      throws NoSuchMethodException, NoSuchFieldException {
    try {
      var type = MethodType.fromMethodDescriptorString(
          isField ? "()" + descriptor : descriptor, LOADER);
      if (isField)
        LOOKUP.findGetter(owner, name, type.returnType());
      else if (name.equals("<init>"))
        LOOKUP.findConstructor(owner, type);
      else
        LOOKUP.findVirtual(owner, name, type);
    } catch (IllegalAccessException there) {
      return;
    }
  }
}
