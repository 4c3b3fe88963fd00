package skipindex;

import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;

/** JSON for the planner, in ASCII alone, so that it may be cut anywhere. */
final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper(
      new JsonFactoryBuilder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build());

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  static String text(JsonNode node) {
    try {
      return MAPPER.writeValueAsString(node);
    } catch (IOException problem) {
      throw new IllegalStateException(problem);
    }
  }

  static JsonNode read(byte[] text) throws IOException {
    return MAPPER.readTree(text);
  }

  static JsonGenerator to(Writer out) throws IOException {
    return MAPPER.getFactory().createGenerator(out);
  }
}
