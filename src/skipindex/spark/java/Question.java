package skipindex;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/** The JSON of what the planner is asked. */
public class Question {
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
   * settings: the names of those that an answer depends on.
   * schemas: as schemas() writes them.
   * more: members of the object, each after a comma.
   */
  static String text(
      String[] settings,
      Path root,
      boolean isCatalogTable,
      String schemas,
      scala.collection.immutable.Map<String, String> options,
      SQLConf reader,
      String keys,
      String more,
      String conjuncts) {
    StringBuilder text = place(root);
    text.append(",\"is_catalog_table\":").append(isCatalogTable);
    text.append(schemas).append(",\"settings\":{");
    SQLConf conf = SQLConf.get();
    for (int i = 0; i < settings.length; i++) {
      if (i > 0) text.append(',');
      quote(text, settings[i]);
      text.append(':');
      quote(text, setting(conf, settings[i]));
    }
    text.append("},\"reader\":{");
    addOthers(text, settings, reader);
    text.append('}');
    addOptions(text, options);
    text.append(",\"keys\":[").append(keys).append(']').append(more);
    return text.append("}\n").append(conjuncts).toString();
  }

  /** The members of a question that tell the columns of files and of folders. */
  static String schemas(StructType data, StructType partitions) {
    StringBuilder text = new StringBuilder();
    addSchema(text, "data", data);
    addSchema(text, "partitions", partitions);
    return text.toString();
  }

  /**
   * A schema in JSON, and by column the type that expressions have for it.
   *
   * The second is written here, as no parser in Python knows all types of the driver.
   */
  static void addSchema(StringBuilder text, String member, StructType schema) {
    text.append(",\"").append(member).append("\":");
    quote(text, schema.json());
    text.append(",\"").append(member).append("_types\":{");
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      if (i > 0) text.append(',');
      quote(text, fields[i].name());
      text.append(':');
      quote(text, fields[i].dataType().catalogString());
    }
    text.append('}');
  }

  /** The settings of the session that defined a relation, where it has others. */
  static void addOthers(StringBuilder text, String[] settings, SQLConf reader) {
    SQLConf conf = SQLConf.get();
    if (conf == reader) return;
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
  static void addOptions(
      StringBuilder text, scala.collection.immutable.Map<String, String> options) {
    text.append(",\"options\":{");
    boolean isFirst = true;
    for (Tuple2<String, String> pair : Scala.each(options)) {
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
    if (value == null) text.append("null");
    else ExpressionJson.quote(text, value);
  }
}
