package skipindex;

import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
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
  static <T> Iterable<T> each(final scala.collection.Iterable<? extends T> of) {
    return new Iterable<T>() {
      @Override
      public Iterator<T> iterator() {
        final scala.collection.Iterator<? extends T> all = of.iterator();
        return new Iterator<T>() {
          @Override
          public boolean hasNext() {
            return all.hasNext();
          }

          @Override
          public T next() {
            return all.next();
          }
        };
      }
    };
  }

  @SafeVarargs
  @SuppressWarnings("varargs")
  static <T> Seq<T> seq(T... these) {
    return listed(Arrays.asList(these));
  }

  static <T> Seq<T> none() {
    return listed(Collections.<T>emptyList());
  }

  static <K, V> Map<K, V> map() {
    return Map$.MODULE$.<K, V>empty();
  }

  static <K, V> Map<K, V> map(K key, V value) {
    return new Map.Map1<K, V>(key, value);
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
