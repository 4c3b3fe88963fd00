package skipindex;

import com.fasterxml.jackson.databind.node.*;
import java.io.IOException;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Aggregates of a scan, of which indexes know the results over some of its files.
 *
 * The results over these files become rows of the plan, and the others are aggregated as
 * before; count, min and max of both are the sum, min and max of what either side has. The
 * output of the aggregate, with its names, types and ids, stays what it is.
 */
final class Answers {
  private static final String ENABLED = "skipindex.answers";
  private static final String NAME = "from_indexes";
  private static final String INDEXES = "from indexes";
  private static final long MAX_CONSTANTS = 1000L;
  private final PlannerCalls planner;

  private Answers(PlannerCalls planner) {
    this.planner = planner;
  }

  /** The plan with the results that are known, in subqueries too. */
  static LogicalPlan in(LogicalPlan plan, PlannerCalls planner) {
    String isOn = SQLConf.get().getConfString(ENABLED, "false");
    if (!isOn.equalsIgnoreCase("true")) return plan;
    return Change.downWithSubqueries(plan, new Answers(planner)::of);
  }

  private LogicalPlan of(TreeNode<?> node) {
    try {
      if (node instanceof GlobalLimit limit) return constants(limit);
      Answered asked = node instanceof Aggregate aggregate ? Answered.of(aggregate) : null;
      return asked == null ? null : asked.plan();
    } catch (Throwable problem) {
      planner.report(problem);
      return null;
    }
  }

  /** So many constants, as EXISTS asks for one, if there are so many rows; else null. */
  private static LogicalPlan constants(GlobalLimit limit) throws Exception {
    TopRows asked = TopRows.of(limit);
    if (asked == null || asked.constants() == null || asked.n() > MAX_CONSTANTS) return null;
    if (!asked.index().canBeAnswered()) return null;
    ObjectNode json = Json.object();
    json.putObject("answer").put("rows", asked.n());
    Seq<PartitionDirectory> all = asked.index().scanned.all();
    Listing.Covered known = ask(asked.index(), all, asked.conjuncts(), json);
    if (known == null) return null;
    var rows = Collections.nCopies((int) asked.n(), new Object[0]);
    LogicalPlan constants = Change.above(
        asked.constants(), LocalRows.relation(List.of(), rows, INDEXES, n(known, all), 0L));
    return Change.above(limit, Change.above(limit.child(), constants));
  }

  /** What a query is told first about all that Spark lists; null if there is no answer. */
  private static Listing.Covered ask(
      SkippingFileIndex index, Seq<PartitionDirectory> all, Seq<Expression> conjuncts,
      ObjectNode json) throws Exception {
    if (all.isEmpty()) return null;
    String name = "answer " + index.query.listing(index.scanned.base()) + "\n"
        + index.scanned.question(Json.array(), json, ExpressionJson.json(conjuncts));
    return index.query.once(name, () -> {
      Listing.Rest rest = index.scanned.ask(all, json, conjuncts, index.query);
      if (rest.answer().isNone()) return null;
      index.scanned.planner().tell(System.identityHashCode(index), rest);
      return new Listing.Covered(rest.answer());
    });
  }

  /** How many of the files that Spark lists are known. */
  private static long n(Listing.Covered known, Seq<PartitionDirectory> all) {
    return Listing.files(all).filter(known::rulesOut).count();
  }

  /**
   * One aggregate.
   *
   * group: by which rows are grouped; null if they are not.
   * functions: each once.
   */
  private record Answered(
      Aggregate aggregate, Attribute group, List<AggregateExpression> functions, Below below) {
    /** The aggregate, if it is one that can be answered; else null. */
    static Answered of(Aggregate aggregate) {
      List<Expression> grouping = Scala.list(aggregate.groupingExpressions());
      if (grouping.size() > 1 || !aggregate.deterministic()) return null;
      Expression group = grouping.isEmpty() ? null : grouping.get(0);
      if (group != null && !(group instanceof AttributeReference)) return null;
      Below below = Below.of(aggregate.child());
      if (below == null || !below.index().canBeAnswered()) return null;
      if (below.index().scanned.isLenient()) return null;
      var found = new Answered(aggregate, (Attribute) group, new ArrayList<>(), below);
      for (NamedExpression one : Scala.each(aggregate.aggregateExpressions())) {
        found.collect((Expression) one);
      }
      return found.functions.isEmpty() && group == null ? null : found;
    }

    /** Adds the functions of an expression, each once. */
    private void collect(Expression expression) {
      if (expression instanceof AggregateExpression function) {
        if (position(function) < 0) functions.add(function);
        return;
      }
      for (Expression one : Scala.each(expression.children())) collect(one);
    }

    int position(Expression function) {
      for (int i = 0; i < functions.size(); i++) {
        if (functions.get(i).canonicalized().equals(function.canonicalized())) return i;
      }
      return -1;
    }

    /** The plan with the results over some files as rows; null if there are none. */
    LogicalPlan plan() throws Exception {
      ObjectNode asked = json();
      if (asked == null) return null;
      Seq<PartitionDirectory> all = below.index().scanned.all();
      Listing.Covered covered = ask(below.index(), all, below.conjuncts(), asked);
      if (covered == null) return null;
      LogicalPlan changed = changed(covered, all);
      return changed.output().equals(aggregate.output()) ? changed : null;
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
        boolean isOfRows = isCount && child instanceof Literal literal && literal.value() != null;
        column = isOfRows || group != null ? null : column(child, !isCount);
        if (!isOfRows && column == null) return null;
        asked.addObject().put("name", name).put("column", column);
      }
      return question;
    }

    /** A column of the scan in JSON; null if it is none, or of no type for results. */
    private String column(Expression made, boolean isResult) {
      Attribute own = below.column(made);
      if (own == null || isResult && !isExact(own.dataType())) return null;
      return ExpressionJson.json(Scala.seq(own));
    }

    /** The aggregate of the known rows and, unless they are all, of the other files. */
    private LogicalPlan changed(Listing.Covered covered, Seq<PartitionDirectory> all)
        throws IOException {
      long files = n(covered, all);
      boolean isWhole = files == Listing.files(all).count();
      var made = new ArrayList<NamedExpression>();
      if (group != null) made.add(group);
      for (AggregateExpression one : functions) {
        var id = NamedExpression$.MODULE$.newExprId();
        made.add(new Alias(one, NAME, id, Scala.none(), Option.empty(), Scala.none()));
      }
      var parts = made.stream().map(NamedExpression::toAttribute).toList();
      var output = isWhole ? parts : parts.stream().map(Attribute::newInstance).toList();
      var types = output.stream().map(Attribute::dataType).toList();
      LogicalPlan input = LocalRows.relation(
          output, LocalRows.values(covered.bits, covered.start(), types), INDEXES, files, 0L);
      if (!isWhole) {
        var scan = SkipRule.withIndex(below.scan(), below.index().without(covered));
        LogicalPlan rest = Change.above(aggregate, below.above(scan));
        LogicalPlan others = Change.part(rest, 1, Scala.listed(made));
        input = new Union(Scala.seq(others, input), false, false);
      }
      return Change.above(Change.expressionsDown(aggregate, one -> total(one, parts)), input);
    }

    /** A function of the results of two sides: what either side has is its input. */
    private Expression total(TreeNode<?> node, List<Attribute> parts) {
      int i = node instanceof AggregateExpression one ? position(one) : -1;
      if (i < 0) return null;
      Attribute part = parts.get(group == null ? i : i + 1);
      AggregateFunction function = functions.get(i).aggregateFunction();
      if (function instanceof Min) return new Min(part).toAggregateExpression();
      if (function instanceof Max) return new Max(part).toAggregateExpression();
      // No row at all is a count of 0, and not NULL.
      return new Coalesce(
          Scala.seq(new Sum(part).toAggregateExpression(), new Literal(0L, function.dataType())));
    }
  }

  /** Whether indexes hold all of a value. */
  private static boolean isExact(DataType type) {
    return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType
        || type instanceof ByteType || type instanceof BooleanType || type instanceof DateType
        || type instanceof TimestampType || type instanceof TimestampNTZType
        || type instanceof DecimalType || type.catalogString().equals("string");
  }
}
