/* Reads recorded graphs. An unknown field or dtype is an error, since a partly understood graph would be
 * rewritten incorrectly. */
#include "cli/amp/graph_json.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
  const char *label; /* the file */
  const char *node;  /* its name; NULL: outside of nodes, or not known yet */
  int number;        /* its index in graph.nodes; -1: outside of nodes */
  const char *type;  /* the current type of the node, or NULL */
  cli_rewrite_case *item;
  mix_amp_graph *graph;
  int *ports; /* of the current type: inputs, then outputs */
  int port_capacity;
} reader;

/* The position of the reader: "node 'm': type T: ", "graph.nodes[3]: ", or nothing. */
static const char *position_text(const reader *r, char *text, size_t size) {
  text[0] = 0;
  if (r->node)
    snprintf(text, size, "node '%.200s': %s%.100s%s", r->node, r->type ? "type " : "", r->type ? r->type : "",
             r->type ? ": " : "");
  else if (r->number >= 0)
    snprintf(text, size, "graph.nodes[%d]: ", r->number);
  return text;
}

/* Records an error with the position of the reader. */
static void *fail(const reader *r, const char *what, const char *got) {
  char where[400];
  return mix_fail_format("%s: %s%s%s", r->label, position_text(r, where, sizeof where), what, got ? got : "");
}

static bool known_fields(const reader *r, const json_t *object, const char *what, const char *const *fields) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    bool found = false;
    for (const char *const *field = fields; *field; field++) found |= !strcmp(*field, key);
    if (!found) {
      char list[512];
      size_t used = 0;
      for (const char *const *field = fields; *field && used < sizeof list; field++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", *field);
      char where[400];
      return mix_fail_format("%s: %s%s has the unknown field \"%s\"; there are %s", r->label,
                             position_text(r, where, sizeof where), what, key, list);
    }
  }
  return true;
}

/* The text of a field; NULL with the error recorded. */
static const char *text_field(const reader *r, const json_t *object, const char *field) {
  const char *text = json_string_value(json_object_get(object, field));
  return text ? text : fail(r, "has no text field ", field);
}

static const json_t *array_field(const reader *r, const json_t *object, const char *field) {
  const json_t *array = json_object_get(object, field);
  return json_is_array(array) ? array : fail(r, "has no list ", field);
}

static bool flag_field(const reader *r, const json_t *object, const char *field, bool *flag) {
  const json_t *value = json_object_get(object, field);
  *flag = json_is_true(value);
  return !value || json_is_boolean(value) || fail(r, "expected true or false in ", field);
}

/* ---- types ---- */

static bool read_ports(reader *r, const json_t *entry, const char *field, int used, int *count) {
  const json_t *list = array_field(r, entry, field), *port;
  size_t i;
  if (!list) return false;
  if (json_array_size(list) > INT_MAX / 4) return fail(r, "too many ports in ", field);
  *count = (int)json_array_size(list);
  if (!mix_reserve(&r->ports, &r->port_capacity, used + *count, sizeof *r->ports)) return false;
  json_array_foreach((json_t *)(uintptr_t)list, i, port) {
    int64_t number;
    if (!mix_json_integer_within(port, 0, INT_MAX, &number))
      return fail(r, "expected port numbers in ", field);
    r->ports[used + (int)i] = (int)number;
  }
  return true;
}

enum {
  FLOATS = 1 << MIX_AMP_DTYPE_FLOAT16 | 1 << MIX_AMP_DTYPE_BFLOAT16 | 1 << MIX_AMP_DTYPE_FLOAT32 |
           1 << MIX_AMP_DTYPE_FLOAT64
};

static bool read_allowed(const reader *r, const json_t *entry, unsigned *allowed) {
  const json_t *list = array_field(r, entry, "allowed"), *item;
  size_t i;
  if (!list) return false;
  json_array_foreach((json_t *)(uintptr_t)list, i, item) {
    int dtype = json_is_string(item) ? mix_amp_dtype_of(json_string_value(item)) : -1;
    if (dtype < 0 || !(FLOATS >> dtype & 1))
      return fail(r, "expected float16, bfloat16, float32 or float64 in allowed, not ",
                  json_is_string(item) ? json_string_value(item) : "that");
    *allowed |= 1u << dtype;
  }
  return true;
}

static bool read_kernel(const reader *r, const json_t *entry, unsigned *kernel) {
  static const char *const fields[] = {"float16", "bfloat16", NULL};
  const json_t *object = json_object_get(entry, "kernel");
  if (!json_is_object(object)) return fail(r, "has no object kernel, which a float type has", NULL);
  if (!known_fields(r, object, "kernel", fields)) return false;
  for (int i = 0; fields[i]; i++) {
    const json_t *value = json_object_get(object, fields[i]);
    if (!json_is_boolean(value)) return fail(r, "expected true or false in kernel.", fields[i]);
    if (json_is_true(value)) *kernel |= 1u << mix_amp_dtype_of(fields[i]);
  }
  return true;
}

static bool read_type(reader *r, const char *id, const json_t *entry, bool renamed) {
  static const char *const attribute[] = {"dtype", "inputs", "outputs", "allowed", "kernel", NULL};
  static const char *const fixed[] = {"dtype", "inputs", "outputs", NULL};
  mix_amp_type_spec spec = {.id = id, .renamed = renamed};
  bool is_fixed = id[0] == '=';
  if (!id[0]) return fail(r, "a type has no name", NULL);
  r->type = id;
  if (!json_is_object(entry)) return fail(r, "expected an object", NULL);
  if (!known_fields(r, entry, "it", is_fixed ? fixed : attribute)) return false;
  const char *dtype = text_field(r, entry, "dtype");
  if (!dtype) return false;
  spec.reference = !strncmp(dtype, "ref:", 4);
  spec.dtype = mix_amp_dtype_of(dtype + (spec.reference ? 4 : 0));
  if (spec.dtype < 0) return fail(r, "there is no dtype ", dtype);
  if (is_fixed && strcmp(id + 1, dtype) != 0) return fail(r, "a type of that name is fixed, and not ", dtype);
  if (!read_ports(r, entry, "inputs", 0, &spec.input_count) ||
      !read_ports(r, entry, "outputs", spec.input_count, &spec.output_count))
    return false;
  if (!is_fixed && !read_allowed(r, entry, &spec.allowed)) return false;
  if (!is_fixed && (FLOATS >> spec.dtype & 1 || json_object_get(entry, "kernel")) &&
      !read_kernel(r, entry, &spec.kernel))
    return false;
  spec.inputs = r->ports;
  spec.outputs = r->ports ? r->ports + spec.input_count : NULL;
  r->type = NULL;
  return mix_amp_graph_add_type(r->graph, &spec);
}

static bool read_types(reader *r, const json_t *object, bool renamed) {
  const json_t *types = json_object_get(object, "types");
  const char *id;
  json_t *entry;
  if (!json_is_object(types)) return fail(r, "has no object types", NULL);
  json_object_foreach((json_t *)(uintptr_t)types, id, entry) {
    if (!read_type(r, id, entry, renamed)) return false;
  }
  return true;
}

/* ---- nodes ---- */

/* The number of data inputs. Control inputs come last. -1 with the error recorded. */
static int count_inputs(const reader *r, const json_t *inputs) {
  const json_t *input;
  size_t i;
  int data = 0;
  bool control = false;
  json_array_foreach((json_t *)(uintptr_t)inputs, i, input) {
    const char *text = json_string_value(input);
    if (!text || !*text) return fail(r, "expected names of nodes in inputs", NULL) ? 0 : -1;
    if (text[0] == '^')
      control = true;
    else if (control)
      return fail(r, "control inputs come last, but behind one stands ", text) ? 0 : -1;
    else
      data++;
  }
  return data;
}

static bool read_node(reader *r, const json_t *object) {
  static const char *const fields[] = {"name",     "op",       "inputs", "device", "types", "renamed",
                                       "stateful", "function", "attrs",  "value",  NULL};
  static const char *const renamed_fields[] = {"op", "types", NULL};
  mix_amp_node_spec spec = {0};
  if (!json_is_object(object)) return fail(r, "expected an object", NULL);
  if (!(spec.name = text_field(r, object, "name"))) return false;
  if (!*spec.name) return fail(r, "its name is empty", NULL);
  if (*spec.name == '^' || strchr(spec.name, ':'))
    return fail(r, "a node's name has no ':', and no '^' in front, unlike ", spec.name);
  r->node = spec.name;
  if (!known_fields(r, object, "it", fields)) return false;
  const json_t *inputs = array_field(r, object, "inputs");
  if (!inputs || !(spec.op = text_field(r, object, "op")) || !(spec.device = text_field(r, object, "device")))
    return false;
  if (!*spec.op) return fail(r, "its op is empty", NULL);
  if ((spec.input_count = count_inputs(r, inputs)) < 0) return false;
  if (!flag_field(r, object, "stateful", &spec.stateful) ||
      !flag_field(r, object, "function", &spec.function))
    return false;
  if (json_object_get(object, "attrs") && !json_is_object(json_object_get(object, "attrs")))
    return fail(r, "expected an object in attrs", NULL);
  if (json_object_get(object, "value") && !json_is_object(json_object_get(object, "value")))
    return fail(r, "expected an object in value", NULL);
  const json_t *renamed = json_object_get(object, "renamed");
  if (renamed) {
    if (!json_is_object(renamed)) return fail(r, "expected an object in renamed", NULL);
    if (!known_fields(r, renamed, "renamed", renamed_fields) ||
        !(spec.renamed = text_field(r, renamed, "op")))
      return false;
  }
  if (mix_amp_graph_add_node(r->graph, &spec) < 0) return false;
  if (!read_types(r, object, false) || (renamed && !read_types(r, renamed, true))) return false;
  r->node = NULL;
  return true;
}

/* "node", "node:2", "^node". */
static bool connect(reader *r, int node, int input, const char *text) {
  bool control = text[0] == '^';
  const char *colon = control ? NULL : strrchr(text, ':');
  size_t length = colon ? (size_t)(colon - text) : strlen(text + control);
  int port = 0;
  if (colon) {
    const char *digit = colon + 1;
    if (!*digit) return fail(r, "no output number in the input ", text);
    for (; *digit; digit++) {
      if (*digit < '0' || *digit > '9' || port > INT_MAX / 10 - 1)
        return fail(r, "no output number in the input ", text);
      port = port * 10 + *digit - '0';
    }
  }
  char small[256], *name = length < sizeof small ? small : mix_alloc(length + 1);
  if (!name) return false;
  memcpy(name, text + control, length);
  name[length] = 0;
  const int *source = mix_amp_names_find(&r->graph->names, name);
  bool ok = source && (control ? mix_amp_graph_control(r->graph, node, *source)
                               : mix_amp_graph_connect(r->graph, node, input, *source, port));
  if (!source) fail(r, "there is no node for its input ", text);
  if (name != small) mix_free(name);
  return ok;
}

static bool preserve(reader *r, const json_t *graph, const char *field) {
  const json_t *list = array_field(r, graph, field), *item;
  size_t i;
  if (!list) return false;
  json_array_foreach((json_t *)(uintptr_t)list, i, item) {
    const int *node =
        json_is_string(item) ? mix_amp_names_find(&r->graph->names, json_string_value(item)) : NULL;
    if (!node)
      return mix_fail_format("%s: graph.%s names '%s', but there is no such node", r->label, field,
                             json_is_string(item) ? json_string_value(item) : "(no text)");
    r->graph->nodes[*node].preserved = true;
  }
  return true;
}

static bool read_graph(reader *r, const json_t *root) {
  static const char *const fields[] = {"fetch", "feed", "nodes", NULL};
  const json_t *graph = json_object_get(root, "graph"), *node, *input;
  size_t n, i;
  if (!json_is_object(graph)) return fail(r, "has no object graph", NULL);
  if (!known_fields(r, graph, "graph", fields)) return false;
  const json_t *nodes = array_field(r, graph, "nodes");
  if (!nodes) return false;
  json_array_foreach((json_t *)(uintptr_t)nodes, n, node) {
    r->number = (int)n;
    if (!read_node(r, node)) return false;
  }
  r->number = -1;
  json_array_foreach((json_t *)(uintptr_t)nodes, n, node) {
    r->node = r->graph->nodes[n].name;
    json_array_foreach(json_object_get(node, "inputs"), i, input) {
      if (!connect(r, (int)n, (int)i, json_string_value(input))) return false;
    }
  }
  r->node = NULL;
  return preserve(r, graph, "fetch") && preserve(r, graph, "feed") && mix_amp_graph_finish(r->graph);
}

/* ---- header fields ---- */

static bool read_gpu(const reader *r, const json_t *root, mix_amp_options *options) {
  static const char *const fields[] = {"architecture", "cuda", "cudnn", NULL};
  const json_t *gpu = json_object_get(root, "gpu");
  const char *texts[3] = {"", "", ""};
  options->has_gpu = json_is_object(gpu);
  options->architecture[0] = options->architecture[1] = options->cuda = options->cudnn = 0;
  if (!gpu) return fail(r, "has no field gpu (null where there is none)", NULL);
  if (json_is_null(gpu)) return true;
  if (!options->has_gpu) return fail(r, "expected an object or null in gpu", NULL);
  if (!known_fields(r, gpu, "gpu", fields)) return false;
  for (int i = 0; fields[i]; i++) {
    const json_t *value = json_object_get(gpu, fields[i]);
    if (value && !json_is_string(value)) return fail(r, "expected a text in gpu.", fields[i]);
    if (value) texts[i] = json_string_value(value);
  }
  mix_amp_parse_architecture(texts[0], options->architecture);
  options->cuda = mix_amp_parse_version(texts[1]);
  options->cudnn = mix_amp_parse_version(texts[2]);
  return true;
}

static bool read_environment(const reader *r, const json_t *root, mix_amp_options *options) {
  const json_t *env = json_object_get(root, "env");
  const char *key;
  json_t *value;
  if (!json_is_object(env)) return fail(r, "has no object env", NULL);
  json_object_foreach((json_t *)(uintptr_t)env, key, value) {
    const char *text = json_string_value(value);
    if (!text) return fail(r, "expected a text in env.", key);
    if (!(text = mix_amp_graph_text(r->graph, text))) return false;
    if (mix_amp_options_set(options, key, text)) continue;
    char message[512];
    return mix_error_take(message, sizeof message) == MIX_MEMORY_ERROR ? mix_fail_memory(r->label)
                                                                       : fail(r, "env: ", message);
  }
  return true;
}

static bool read_case(reader *r, const json_t *root) {
  static const char *const fields[] = {"name", "mode",  "target",   "gpu", "env",
                                       "note", "graph", "expected", NULL};
  mix_amp_options *options = &r->item->options;
  if (!json_is_object(root)) return fail(r, "expected an object", NULL);
  if (!known_fields(r, root, "the file", fields)) return false;
  if (json_object_get(root, "note") && !json_is_string(json_object_get(root, "note")))
    return fail(r, "expected a text in note", NULL);
  if (json_object_get(root, "expected") && !json_is_object(json_object_get(root, "expected")))
    return fail(r, "expected an object in expected", NULL);
  const char *name = text_field(r, root, "name"), *mode = name ? text_field(r, root, "mode") : NULL;
  if (!name || !mode || !(r->item->name = mix_amp_graph_text(r->graph, name))) return false;
  int number = mix_amp_mode_of(mode);
  if (number < 0)
    return mix_fail_format(
        "%s: there is no mode \"%s\"; expected cuda_float16, cpu_float16, onednn_bfloat16 or onednn_float16",
        r->label, mode);
  options->mode = (mix_amp_mode)number;
  const char *own = mix_amp_dtype_name(mix_amp_mode_target(options->mode)),
             *target = json_string_value(json_object_get(root, "target"));
  if (json_object_get(root, "target") && (!target || strcmp(target, own) != 0))
    return mix_fail_format("%s: target is \"%s\", but that of the mode %s is %s", r->label,
                           target ? target : "(no text)", mode, own);
  return read_gpu(r, root, options) && read_environment(r, root, options) && read_graph(r, root);
}

static void finalize(void *object) { mix_release(((cli_rewrite_case *)object)->graph); }
static const mix_class class = {.name = "rewrite case", .finalize = finalize};

cli_rewrite_case *cli_rewrite_read(const char *label, const void *data, size_t size,
                                   const mix_amp_options *base) {
  if (mix_failed()) return NULL;
  json_error_t error;
  json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    if (json_error_code(&error) == json_error_out_of_memory) return mix_fail_memory(label);
    return mix_fail_format("%s: line %d, column %d: %s", label, error.line, error.column, error.text);
  }
  cli_rewrite_case *item = mix_object_new(sizeof *item, &class);
  reader r = {.label = label, .item = item, .number = -1};
  bool ok = false;
  if (item) {
    mix_scoped(item);
    if (base) item->options = *base;
    item->graph = mix_retain(mix_amp_graph_new(label));
    r.graph = item->graph;
    ok = r.graph && read_case(&r, root);
  }
  mix_free(r.ports);
  json_decref(root);
  return ok ? item : NULL;
}
