package skipindex;

import com.fasterxml.jackson.databind.node.*;
import java.time.Instant;
import java.util.*;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import scala.Tuple2;

/** Members of the JSON of what the planner is asked. */
final class Question {
  /** Of the messages; protocol.py has the same. */
  static final int VERSION = 4;

  /** A plan relies on offsets around days from 1900 to 2037. */
  private static final Instant FIRST = Instant.parse("1899-12-01T00:00:00Z");

  private static final Instant LAST = Instant.parse("2038-02-01T00:00:00Z");

  private Question() {}

  /**
   * A message that asks about a scan.
   *
   * names: of the settings that an answer depends on.
   * conditions: in JSON.
   */
  static ObjectNode about(
      Path root, ObjectNode scan, String[] names, ArrayNode keys, String conditions) {
    ObjectNode question = place(root).put("version", VERSION);
    question.setAll(scan);
    ObjectNode settings = question.putObject("settings");
    for (String name : names) settings.put(name, setting(SQLConf.get(), name));
    addOffsets(question, keys + conditions);
    question.set("keys", keys);
    return question;
  }

  /** An object that tells a folder, and where its indexes are if not in it. */
  static ObjectNode place(Path root) {
    return Json.object()
        .put("root", root.toUri().getPath())
        .put("scheme", root.toUri().getScheme())
        .put("authority", root.toUri().getAuthority())
        .put("sidecar", Roots.sidecar());
  }

  /** What tells the columns of files and of folders, which are read as the session says. */
  static ObjectNode scan(StructType data, StructType partitions, boolean isCatalogTable) {
    ObjectNode scan = Json.object().put("is_catalog_table", isCatalogTable);
    addSchema(scan, "data", data);
    addSchema(scan, "partitions", partitions);
    scan.putObject("reader");
    scan.putObject("options");
    return scan;
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

  /**
   * The offsets of the session's zone, if a condition may depend on them.
   *
   * conditions: in JSON; an expression that depends on a zone holds its name.
   */
  private static void addOffsets(ObjectNode question, String conditions) {
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

  /** Settings of the session that defined a relation, and options, that say how it is read. */
  static void addReading(ObjectNode question, HadoopFsRelation relation, String[] names) {
    ObjectNode others = question.putObject("reader");
    SQLConf reader = relation.sparkSession().sessionState().conf();
    if (reader != SQLConf.get()) {
      for (String name : names) {
        String value = setting(reader, name);
        if (!Objects.equals(value, setting(SQLConf.get(), name))) others.put(name, value);
      }
    }
    ObjectNode options = question.putObject("options");
    for (Tuple2<String, String> pair : Scala.each(relation.options())) {
      String name = pair._1().toLowerCase(Locale.ROOT);
      if (name.endsWith("rebasemode")) options.put(name, pair._2());
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
