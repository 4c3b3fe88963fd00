package skipindex;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * Lets sessions take the statements of skipindex as SQL.
 *
 * A session has one parser. This one stands in front of it, and gives it every text that does
 * not begin as a statement of skipindex, unchanged. Python reads a statement when it is parsed,
 * and carries it out when Spark runs the command that it has become: once, as for any command.
 */
public class Statements extends scala.runtime.AbstractFunction2 {
    /** How a statement begins, after comments. */
    private static final Pattern BEGIN = Pattern.compile(
        "(?:OPTIMIZE|VACUUM|EXPLAIN\\s+SKIPPING|DESC(?:RIBE)?\\s+SKIPPING"
            + "|(?:CREATE|DROP)\\s+INDEX(?:ES)?\\s+ON|(?:SHOW|REFRESH)\\s+INDEX(?:ES)?"
            + "|ALTER\\s+TABLE(?=.*\\bDISTRIBUTED\\s+BY\\b))\\b",
        Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
    /** What stands for the command in the query that makes columns of its rows. */
    private static final String ROWS = "skipindex_rows";
    /** Spark's class of errors of a text that it cannot read. */
    private static final String SYNTAX = "PARSE_SYNTAX_ERROR";
    private static final ObjectMapper JSON = new ObjectMapper();
    private volatile Function python;

    /** From now on statements are given to Python; to null, they are as unknown as before. */
    public void connect(Function python) {
        this.python = python;
    }

    /** Give a session the parser, and those that will share its extensions. */
    public void add(Object session, SparkSessionExtensions extensions, boolean isNew, SessionState state) {
        if (isNew) extensions.injectParser(this);
        ParserInterface parser = state.sqlParser();
        if (isOurs(parser)) return;
        try {
            Field field = SessionState.class.getDeclaredField("sqlParser");
            field.setAccessible(true);
            field.set(state, inFrontOf(parser, session));
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** The parser of a session that is made after another one of its extensions. */
    public Object apply(Object session, Object parser) {
        return inFrontOf((ParserInterface) parser, session);
    }

    private ParserInterface inFrontOf(ParserInterface below, Object session) {
        return (ParserInterface) Proxy.newProxyInstance(
            ParserInterface.class.getClassLoader(),
            new Class[] {ParserInterface.class},
            new Parser(below, session));
    }

    private static boolean isOurs(Object parser) {
        return Proxy.isProxyClass(parser.getClass())
            && Proxy.getInvocationHandler(parser) instanceof Parser;
    }

    /** Whether a text begins as a statement. */
    static boolean isStatement(String text) {
        int begin = 0;
        while (begin < text.length()) {
            if (Character.isWhitespace(text.charAt(begin))) begin++;
            else if (text.startsWith("--", begin)) begin = after(text, "\n", begin);
            else if (text.startsWith("/*", begin)) begin = after(text, "*/", begin);
            else break;
        }
        return BEGIN.matcher(text).region(begin, text.length()).lookingAt();
    }

    private static int after(String text, String end, int begin) {
        int found = text.indexOf(end, begin);
        return found < 0 ? text.length() : found + end.length();
    }

    /** What Python answers to a text of a session: to read it, or to run it. */
    private static JsonNode ask(Function python, String verb, Object session, String text)
            throws Exception {
        Object asked = new ArrayList(Arrays.asList(new Object[] {verb, session, text}));
        return JSON.readTree((String) python.apply(asked));
    }

    /** A parser in front of another. */
    private class Parser implements InvocationHandler {
        private final ParserInterface below;
        private final Object session;

        Parser(ParserInterface below, Object session) {
            this.below = below;
            this.session = session;
        }

        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            Function current = python;
            boolean isRead = current != null && method.getName().startsWith("parsePlan")
                && isStatement((String) arguments[0]);
            if (!isRead) return given(method, arguments);
            String text = (String) arguments[0];
            JsonNode answer = ask(current, "read", session, text);
            boolean isOurs = answer.has("columns");
            if (isOurs && !answer.get("may_be_of_others").booleanValue()) {
                return planned(answer, current, text);
            }
            try {
                return given(method, arguments); // Delta has statements that begin so too
            } catch (Exception unknown) {
                if (isOurs) return planned(answer, current, text);
                // A quote that is not closed, for example, is for it to tell.
                throw answer.has("near") ? syntaxError(answer, text) : unknown;
            }
        }

        private Object given(Method method, Object[] arguments) throws Throwable {
            try {
                return method.invoke(below, arguments);
            } catch (InvocationTargetException wrapped) {
                throw wrapped.getCause();
            }
        }

        /** The command, whose rows are JSON, as a query of its columns. */
        private LogicalPlan planned(JsonNode answer, Function python, String text)
                throws Exception {
            LogicalPlan query = below.parsePlan(
                "SELECT found.* FROM (SELECT from_json(command_output, '"
                    + answer.get("columns").textValue() + "') AS found FROM " + ROWS + ")");
            return (LogicalPlan) query.transformDown(
                new Put(new Command(new Run(python, session), text, noMap())));
        }
    }

    /** A command whose column is the same one whenever Spark asks, also of a copy. */
    public static class Command extends ExternalCommandExecutor {
        public Command(ExternalCommandRunner runner, String text, Map options) {
            super(runner, text, options);
        }

        public SEQ output() {
            Run run = (Run) runner();
            if (run.column == null) run.column = super.output();
            return (SEQ) run.column;
        }
    }

    /** Puts the command where its name stands. */
    private static class Put extends scala.runtime.AbstractPartialFunction {
        private final LogicalPlan command;

        Put(LogicalPlan command) {
            this.command = command;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof UnresolvedRelation;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            return isDefinedAt(node) ? command : otherwise.apply(node);
        }
    }

    /** Carries a statement out. */
    private static class Run implements ExternalCommandRunner {
        private final Function python;
        private final Object session;
        /** Of the command. */
        volatile Object column;

        Run(Function python, Object session) {
            this.python = python;
            this.session = session;
        }

        public String[] executeCommand(String text, CaseInsensitiveStringMap options) {
            String[] found = new String[0];
            try {
                JsonNode answer = ask(python, "run", session, text);
                if (answer.has("error")) throw failure(answer.get("error").textValue());
                JsonNode rows = answer.get("rows");
                found = new String[rows.size()];
                for (int i = 0; i < found.length; i++) found[i] = rows.get(i).toString();
            } catch (Exception problem) {
                Platform.throwException(problem); // Scala declares none
            }
            return found;
        }
    }

    private static Exception failure(String message) {
        scala.Option none = scala.Option.empty();
        return new AnalysisException(
            message, none, none, none, none, noMap(), new QueryContext[0]);
    }

    private static Map noMap() {
        return (Map) Map$.MODULE$.empty();
    }

    /** What is wrong with the text of a statement, as Spark says it. */
    private static Exception syntaxError(JsonNode answer, String text) throws Exception {
        Map words = (Map) noMap().updated("error", answer.get("near").textValue());
        words = (Map) words.updated("hint", answer.get("hint").textValue());
        Constructor made = Origin.class.getConstructors()[0];
        Object[] parts = new Object[made.getParameterTypes().length];
        Arrays.fill(parts, scala.Option.empty());
        parts[0] = scala.Option.apply(answer.get("line").numberValue());
        parts[1] = scala.Option.apply(answer.get("position").numberValue());
        Object at = made.newInstance(parts);
        Object command = scala.Option.apply(text);
        for (Constructor each : ParseException.class.getConstructors()) {
            Class[] types = each.getParameterTypes();
            Object[] arguments = null;
            // Until Spark 4.0 an error has an end too.
            if (types.length == 4 && types[2] == String.class) {
                arguments = new Object[] {command, at, SYNTAX, words};
            } else if (types.length == 5 && types[3] == String.class) {
                arguments = new Object[] {command, at, at, SYNTAX, words};
            }
            if (arguments != null) return (Exception) each.newInstance(arguments);
        }
        throw new IllegalStateException("no ParseException of an error class");
    }
}
