package skipindex;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.Metadata$;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Aggregates of a scan, of which indexes know the results over some of its files.
 *
 * The results over these files become rows of the plan, and the others are aggregated as
 * before; count, min and max of both are the sum, min and max of what either side has. The
 * output of the aggregate, with its names, types and ids, stays what it is.
 */
class Answers extends Change {
  private static final String ENABLED = "skipindex.answers";
  private static final String NAME = "from_indexes";
  private static final long MAX_CONSTANTS = 1000L;
  private final PlannerCalls planner;

  private Answers(PlannerCalls planner) {
    this.planner = planner;
  }

  /** The plan with the results that are known, in subqueries too. */
  static LogicalPlan in(LogicalPlan plan, PlannerCalls planner) {
    String isOn = SQLConf.get().getConfString(ENABLED, "false");
    if (!isOn.equalsIgnoreCase("true")) return plan;
    return new Answers(planner).downWithSubqueries(plan);
  }

  @Override
  LogicalPlan of(Object node) {
    try {
      if (node instanceof GlobalLimit) return constants((GlobalLimit) node);
      Answered asked = node instanceof Aggregate ? Answered.of((Aggregate) node) : null;
      return asked == null ? null : asked.plan();
    } catch (Throwable problem) {
      planner.report(problem);
      return null;
    }
  }

  /** So many constants, as EXISTS asks for one, if there are so many rows; else null. */
  private static LogicalPlan constants(GlobalLimit limit) {
    TopRows asked = TopRows.of(limit);
    if (asked == null || asked.constants == null || asked.n > MAX_CONSTANTS) return null;
    if (!asked.index.canBeAnswered()) return null;
    ObjectNode json = Json.object();
    json.putObject("answer").put("rows", asked.n);
    Seq<PartitionDirectory> all = asked.index.scanned.all();
    if (ask(asked.index, all, asked.conjuncts, json) == null) return null;
    List<InternalRow> rows = new ArrayList<>();
    for (long i = 0L; i < asked.n; i++) rows.add(new GenericInternalRow(new Object[0]));
    return above(
        limit,
        above(
            limit.children().apply(0),
            above(asked.constants, local(new ArrayList<Attribute>(), rows))));
  }

  /** What a query is told first about all that Spark lists; null if there is no answer. */
  private static Listing.Covered ask(
      SkippingFileIndex index, Seq<PartitionDirectory> all, Seq<Expression> conjuncts,
      ObjectNode json) {
    if (all.isEmpty()) return null;
    String name = "answer " + index.query.listing(index.scanned.base) + "\n"
        + index.scanned.question(Json.array(), json, ExpressionJson.json(conjuncts));
    Object known = index.query.get(name);
    if (known == null) {
      index.query.put(name, "none"); // whatever happens now
      PlannerCalls.Numbered found = index.scanned.ask(all, json, conjuncts, index.query);
      if (found.answer == null) return null;
      index.scanned.planner.tell(found.number, index, found.answer.rest(all, index.scanned));
      known = new Listing.Covered(found.answer);
      index.query.put(name, known);
    }
    return known instanceof Listing.Covered ? (Listing.Covered) known : null;
  }

  static LogicalPlan above(LogicalPlan node, LogicalPlan child) {
    return node.withNewChildren(Scala.seq(child));
  }

  /** One aggregate, which has nothing but a projection and a condition above its scan. */
  private static class Answered {
    final Aggregate aggregate;
    final List<Project> projects = new ArrayList<>();
    final List<AggregateExpression> functions = new ArrayList<>();
    Attribute group;
    Filter filter;
    LogicalRelation scan;
    SkippingFileIndex index;

    private Answered(Aggregate aggregate) {
      this.aggregate = aggregate;
    }

    /** The aggregate, if it is one that can be answered; else null. */
    static Answered of(Aggregate aggregate) {
      Answered found = new Answered(aggregate);
      Seq<Expression> grouping = Scala.kept(aggregate.groupingExpressions());
      if (grouping.size() > 1 || !aggregate.deterministic()) return null;
      if (grouping.size() == 1) {
        if (!(grouping.apply(0) instanceof AttributeReference)) return null;
        found.group = (Attribute) grouping.apply(0);
      }
      LogicalPlan node = aggregate.child();
      for (; node instanceof Project; node = ((Project) node).child()) {
        found.projects.add((Project) node);
      }
      if (node instanceof Filter) {
        found.filter = (Filter) node;
        node = found.filter.child();
      }
      found.index = SkipRule.indexOf(node);
      if (found.index == null || !found.index.canBeAnswered()) return null;
      if (TopRows.isLenient(found.index)) return null;
      found.scan = (LogicalRelation) node;
      for (NamedExpression one : Scala.each(aggregate.aggregateExpressions())) {
        found.collect((Expression) one);
      }
      return found.functions.isEmpty() && found.group == null ? null : found;
    }

    /** Adds the functions of an expression, each once. */
    private void collect(Expression expression) {
      if (expression instanceof AggregateExpression) {
        if (position(expression) < 0) functions.add((AggregateExpression) expression);
        return;
      }
      for (Expression one : Scala.each(expression.children())) collect(one);
    }

    int position(Expression function) {
      for (int i = 0; i < functions.size(); i++) {
        Expression one = (Expression) functions.get(i);
        if (one.canonicalized().equals(function.canonicalized())) return i;
      }
      return -1;
    }

    /** The plan with the results over some files as rows; null if there are none. */
    LogicalPlan plan() {
      ObjectNode asked = json();
      if (asked == null) return null;
      List<Expression> split = new ArrayList<>();
      if (filter != null) SkipRule.split(filter.condition(), split);
      Seq<Expression> conjuncts = TopRows.normalized(split, scan);
      Seq<PartitionDirectory> all = index.scanned.all();
      Listing.Covered covered = ask(index, all, conjuncts, asked);
      if (covered == null) return null;
      LogicalPlan changed = changed(covered, isWhole(covered, all));
      return changed.output().equals(aggregate.output()) ? changed : null;
    }

    private static boolean isWhole(Listing.Covered covered, Seq<PartitionDirectory> all) {
      for (PartitionDirectory directory : Scala.each(all)) {
        for (FileStatusWithMetadata file : Scala.each(directory.files())) {
          if (!covered.rulesOut(file.fileStatus())) return false;
        }
      }
      return true;
    }

    /** What is asked, as a member of a question; null if it is not answered. */
    private ObjectNode json() {
      ObjectNode question = Json.object();
      ObjectNode answer = question.putObject("answer");
      String column = group == null ? null : column(group, true);
      if (group != null && column == null) return null;
      answer.put("group", column);
      ArrayNode asked = answer.putArray("functions");
      for (AggregateExpression one : functions) {
        AggregateFunction function = one.aggregateFunction();
        boolean isCount = function instanceof Count;
        boolean isKnown = isCount || function instanceof Min || function instanceof Max;
        if (!isKnown || one.isDistinct() || one.filter().isDefined()) return null;
        if (function.children().size() != 1) return null;
        String name = isCount ? "count" : function instanceof Min ? "min" : "max";
        Expression child = function.children().apply(0);
        boolean isOfRows = isCount && child instanceof Literal && ((Literal) child).value() != null;
        column = isOfRows || group != null ? null : column(child, !isCount);
        if (!isOfRows && column == null) return null;
        asked.addObject().put("name", name).put("column", column);
      }
      return question;
    }

    /** A column of the scan in JSON; null if it is none, or of no type for results. */
    private String column(Expression made, boolean isResult) {
      Expression column = made;
      for (Project project : projects) {
        if (column != null) column = TopRows.source(column, project);
      }
      Attribute own = column == null ? null : TopRows.columnOf(scan, column);
      if (own == null || isResult && !isExact(own.dataType())) return null;
      return ExpressionJson.json(Scala.<Expression>seq(own));
    }

    /** The aggregate of the known rows and, unless they are all, of the other files. */
    private LogicalPlan changed(Listing.Covered covered, boolean isWhole) {
      List<NamedExpression> made = new ArrayList<>();
      List<Attribute> parts = new ArrayList<>();
      if (group != null) {
        made.add((NamedExpression) group);
        parts.add(group);
      }
      for (int i = 0; i < functions.size(); i++) {
        Alias part = new Alias(
            (Expression) functions.get(i),
            NAME,
            NamedExpression$.MODULE$.newExprId(),
            Scala.<String>none(),
            Option.<Metadata>empty(),
            Scala.<String>none());
        made.add(part);
        parts.add(part.toAttribute());
      }
      List<Attribute> output = new ArrayList<>();
      for (Attribute one : parts) {
        output.add(
            isWhole ? one
                    : new AttributeReference(
                          one.name(),
                          one.dataType(),
                          one.nullable(),
                          Metadata$.MODULE$.empty(),
                          NamedExpression$.MODULE$.newExprId(),
                          Scala.<String>none()));
      }
      LogicalPlan input = local(output, rows(covered.text(), output));
      if (!isWhole) {
        LogicalPlan rest = SkipRule.withIndex(scan, index.without(covered));
        if (filter != null) rest = above(filter, rest);
        for (int i = projects.size() - 1; i >= 0; i--) {
          rest = above((LogicalPlan) projects.get(i), rest);
        }
        Object[] arguments = arguments(above(aggregate, rest));
        arguments[1] = Scala.listed(made);
        LogicalPlan others = above(aggregate, rest).makeCopy(arguments);
        input = new Union(Scala.seq(others, input), false, false);
      }
      Totals totals = new Totals(this, parts);
      return above(totals.expressionsDown(aggregate), input);
    }
  }

  /** What a node was made of. */
  private static Object[] arguments(LogicalPlan node) {
    Object[] arguments = new Object[node.productArity()];
    for (int i = 0; i < arguments.length; i++) arguments[i] = node.productElement(i);
    return arguments;
  }

  private static LogicalPlan local(List<Attribute> output, List<InternalRow> rows) {
    LocalRelation empty = LocalRelation.fromExternalRows(Scala.listed(output), Scala.<Row>none());
    Object[] arguments = arguments(empty);
    arguments[1] = Scala.listed(rows);
    return empty.makeCopy(arguments);
  }

  /** The functions of the results of two sides: what either side has is their input. */
  private static class Totals extends Change {
    private final Answered asked;
    private final List<Attribute> parts;

    Totals(Answered asked, List<Attribute> parts) {
      this.asked = asked;
      this.parts = parts;
    }

    @Override
    Expression of(Object node) {
      if (!(node instanceof AggregateExpression)) return null;
      int i = asked.position((Expression) node);
      if (i < 0) return null;
      Expression part = (Expression) parts.get(asked.group == null ? i : i + 1);
      AggregateFunction function = ((AggregateExpression) node).aggregateFunction();
      if (function instanceof Min) return new Min(part).toAggregateExpression();
      if (function instanceof Max) return new Max(part).toAggregateExpression();
      // No row at all is a count of 0, and not NULL.
      return new Coalesce(Scala.<Expression>seq(
          new Sum(part).toAggregateExpression(), new Literal(0L, function.dataType())));
    }
  }

  /** Whether the text of a value says all of it. */
  private static boolean isExact(DataType type) {
    return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType
        || type instanceof ByteType || type instanceof BooleanType || type instanceof DateType
        || type instanceof TimestampType || type instanceof TimestampNTZType
        || type instanceof DecimalType || type.catalogString().equals("string");
  }

  /** The rows of a text: a line for each, with tabs between values. */
  private static List<InternalRow> rows(String text, List<Attribute> output) {
    List<InternalRow> rows = new ArrayList<>();
    String[] lines = text.split("\n", -1); // nothing follows the last end of a line
    for (int i = 0; i < lines.length - 1; i++) {
      String[] fields = lines[i].split("\t", -1);
      Object[] values = new Object[output.size()];
      for (int j = 0; j < values.length; j++) {
        values[j] = value(fields[j], output.get(j).dataType());
      }
      rows.add(new GenericInternalRow(values));
    }
    return rows;
  }

  private static Object value(String text, DataType type) {
    if (text.isEmpty()) return null;
    if (text.charAt(0) == 'x') {
      byte[] bytes = new byte[text.length() / 2];
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] = (byte) Integer.parseInt(text.substring(2 * i + 1, 2 * i + 3), 16);
      }
      return UTF8String.fromBytes(bytes);
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      BigDecimal exact = new BigDecimal(new BigInteger(text), decimal.scale());
      return Decimal.apply(exact, decimal.precision(), decimal.scale());
    }
    long number = Long.parseLong(text);
    if (type instanceof BooleanType) return Boolean.valueOf(number != 0L);
    if (type instanceof ByteType) return Byte.valueOf((byte) number);
    if (type instanceof ShortType) return Short.valueOf((short) number);
    if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf((int) number);
    }
    return Long.valueOf(number);
  }
}
