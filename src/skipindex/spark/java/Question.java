package skipindex;

import com.fasterxml.jackson.databind.node.*;
import java.time.Instant;
import java.util.*;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import scala.Tuple2;
import scala.collection.immutable.Map;

/** Members of the JSON of what the planner is asked. */
final class Question {
  /** Of the messages; protocol.py has the same. */
  static final int VERSION = 3;

  /** A plan relies on offsets around days from 1900 to 2037. */
  private static final Instant FIRST = Instant.parse("1899-12-01T00:00:00Z");

  private static final Instant LAST = Instant.parse("2038-02-01T00:00:00Z");

  private Question() {}

  /** The begin of a message that asks about a folder. */
  static ObjectNode about(Path root) {
    return place(root).put("version", VERSION);
  }

  /** An object that tells a folder, and where its indexes are if not in it. */
  static ObjectNode place(Path root) {
    return Json.object()
        .put("root", root.toUri().getPath())
        .put("scheme", root.toUri().getScheme())
        .put("authority", root.toUri().getAuthority())
        .put("sidecar", Roots.sidecar());
  }

  /** What tells the columns of files and of folders. */
  static ObjectNode schemas(StructType data, StructType partitions) {
    ObjectNode question = Json.object();
    addSchema(question, "data", data);
    addSchema(question, "partitions", partitions);
    return question;
  }

  /**
   * A schema in JSON, and by column the type that expressions have for it.
   *
   * The second is written here, as no parser in Python knows all types of the driver.
   */
  private static void addSchema(ObjectNode question, String member, StructType schema) {
    question.put(member, schema.json());
    ObjectNode types = question.putObject(member + "_types");
    for (StructField field : schema.fields()) {
      types.put(field.name(), field.dataType().catalogString());
    }
  }

  /** The settings that an answer depends on. */
  static void addSettings(ObjectNode question, String[] names) {
    ObjectNode settings = question.putObject("settings");
    for (String name : names) settings.put(name, setting(SQLConf.get(), name));
  }

  /**
   * The offsets of the session's zone, if a condition may depend on them.
   *
   * conditions: in JSON; an expression that depends on a zone holds its name.
   */
  static void addOffsets(ObjectNode question, String conditions) {
    String zone = SQLConf.get().sessionLocalTimeZone();
    if (!conditions.contains(zone)) return;
    var rules = DateTimeUtils.getZoneId(zone).getRules();
    ArrayNode written = question.putArray("offsets");
    written.add(FIRST.getEpochSecond()).add(rules.getOffset(FIRST).getTotalSeconds());
    var next = rules.nextTransition(FIRST);
    while (next != null && next.getInstant().isBefore(LAST)) {
      written.add(next.toEpochSecond()).add(next.getOffsetAfter().getTotalSeconds());
      next = rules.nextTransition(next.getInstant());
    }
  }

  /** The settings of the session that defined a relation, where it has others. */
  static void addReader(ObjectNode question, String[] names, SQLConf reader) {
    ObjectNode others = question.putObject("reader");
    SQLConf conf = SQLConf.get();
    if (conf == reader) return;
    for (String name : names) {
      String value = setting(reader, name);
      if (!Objects.equals(value, setting(conf, name))) others.put(name, value);
    }
  }

  /** The options that say how times are read. */
  static void addOptions(ObjectNode question, Map<String, String> options) {
    ObjectNode written = question.putObject("options");
    for (Tuple2<String, String> pair : Scala.each(options)) {
      String name = pair._1().toLowerCase(Locale.ROOT);
      if (name.endsWith("rebasemode")) written.put(name, pair._2());
    }
  }

  /** The value, or Spark's default; null if Spark does not know the setting. */
  private static String setting(SQLConf conf, String name) {
    try {
      return conf.getConfString(name);
    } catch (NoSuchElementException unknown) {
      return null;
    }
  }
}
