package skipindex;

import java.util.*;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.spark.api.python.PythonUtils;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * Scala's collections as Java's, and back.
 *
 * A list that Spark is given is an immutable one, which all versions of Scala take.
 */
final class Scala {
  private Scala() {}

  /** What a collection has, once; it is not asked for more than is taken. */
  static <T> Iterable<T> each(scala.collection.Iterable<? extends T> of) {
    return () -> {
      var all = of.iterator();
      return new Iterator<>() {
        @Override
        public boolean hasNext() {
          return all.hasNext();
        }

        @Override
        public T next() {
          return all.next();
        }
      };
    };
  }

  static <T> Stream<T> stream(scala.collection.Iterable<? extends T> of) {
    return StreamSupport.stream(Scala.<T>each(of).spliterator(), false);
  }

  /** A list that may be added to. */
  static <T> List<T> list(scala.collection.Iterable<? extends T> of) {
    var all = new ArrayList<T>();
    for (T one : each(of)) all.add(one);
    return all;
  }

  @SafeVarargs
  @SuppressWarnings("varargs")
  static <T> Seq<T> seq(T... these) {
    return listed(List.of(these));
  }

  static <T> Seq<T> none() {
    return listed(List.of());
  }

  static <K, V> Map<K, V> map() {
    return Map$.MODULE$.empty();
  }

  static <K, V> Map<K, V> map(K key, V value) {
    return new Map.Map1<>(key, value);
  }

  static <T> Seq<T> listed(List<? extends T> these) {
    return PythonUtils.toSeq(Collections.<T>unmodifiableList(these)).toList();
  }

  /** A list of Spark's, which is not known to be immutable before Scala 2.13. */
  @SuppressWarnings("unchecked") // it is only read
  static <T> Seq<T> kept(scala.collection.Seq<? extends T> these) {
    return (Seq<T>) (these instanceof Seq ? these : these.toList());
  }
}
