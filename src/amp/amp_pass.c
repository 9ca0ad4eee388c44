/* The automatic mixed precision rewrite as a pass. It builds the rewrite's view of a captured function from
 * op signatures and TensorFlow names, and applies the decisions: new dtypes, and casts. It runs first, before
 * other passes create ops that are not in TensorFlow's lists. */
#include "amp/amp_pass.h"

#include "base/alloc.h"
#include "base/error.h"
#include "amp/setting.h"
#include "amp/cast_watch.h"
#include "passes/passes.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

/* Attributes that hold the dtype of a result. */
static const struct {
  const mix_op *op;
  size_t offset;
} dtype_attributes[] = {{&mix_op_cast, offsetof(mix_cast_attributes, dtype)},
                        {&mix_op_fill, offsetof(mix_shape_attributes, dtype)},
                        {&mix_op_one_hot, offsetof(mix_one_hot_attributes, dtype)},
                        {&mix_op_range, offsetof(mix_range_attributes, dtype)},
                        {&mix_op_random_uniform, offsetof(mix_shape_attributes, dtype)},
                        {&mix_op_random_normal, offsetof(mix_shape_attributes, dtype)},
                        {&mix_op_random_truncated_normal, offsetof(mix_shape_attributes, dtype)}};

typedef struct view {
  mix_ir *ir;
  mix_amp_graph *graph;
  /* ir node, by graph node; -1: one of the end nodes (results and stores of variables), which come last */
  int *node;
  int *graph_node;  /* graph node, by ir node */
  int *ports;       /* scratch: the inputs of a type, then its outputs */
  int first_result; /* first end node: one for each result, then one for each variable's exit */
  /* result values of casts: those of the rewrite, and by graph node those of the function; -1: none */
  int *inserted, *own;
} view;

static int float_bits(const mix_op *op, int variable) {
  static const mix_dtype floats[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  int bits = 0;
  for (int i = 0; i < 4; i++)
    if (mix_op_allows(op, variable, floats[i])) bits |= 1 << mix_amp_dtype_of(mix_dtype_name(floats[i]));
  return bits;
}

/* Adds a type, with these ports, to the latest node. */
static bool add_type(view *v, const char *id, mix_dtype dtype, unsigned floats, int inputs, int outputs) {
  mix_amp_type_spec spec = {
      .id = id, .dtype = mix_amp_dtype_of(mix_dtype_name(dtype)), .allowed = floats, .kernel = floats};
  spec.input_count = inputs;
  spec.output_count = outputs;
  spec.inputs = v->ports;
  spec.outputs = v->ports + inputs;
  return mix_amp_graph_add_type(v->graph, &spec);
}

/* The signature letter of each operand and result, in order. Returns their number, or -1 if there are more
 * than `max` or they do not fit. */
static int signature_letters(const mix_ir_node *node, char *letters, int max) {
  int used = 0, operand = 0;
  const char *p = node->op->signature;
  for (; *p && *p != '-'; p += *p == ',') {
    char letter = *p++;
    bool many = *p == '*';
    if (many) p++;
    for (int last = many ? node->input_count : operand + 1; operand < last; operand++) {
      if (used == max) return -1;
      letters[used++] = letter;
    }
  }
  for (p += *p == '-' ? 2 : 0; *p; p++)
    if (*p != ',' && used < max) letters[used++] = *p;
  return operand == node->input_count && used == node->input_count + node->output_count ? used : -1;
}

/* Of a loop: a fixed letter for each dtype, so that its own pass alone changes what is inside. */
static int loop_letters(const mix_ir *ir, const mix_ir_node *node, char *letters) {
  int used = 0;
  for (int i = 0; i < node->input_count; i++)
    letters[used++] = (char)('a' + ir->values[node->inputs[i]].dtype);
  for (int o = 0; o < node->output_count; o++)
    letters[used++] = (char)('a' + ir->values[node->first_output + o].dtype);
  return used;
}

/* Adds a type for each letter: upper case for dtypes that the op leaves open, lower case for fixed ones. */
static bool add_letters(view *v, const mix_ir_node *node, const char *letters, int count) {
  char done[256] = {0};
  for (int i = 0, variable = 0; i < count; i++) {
    char letter = letters[i];
    bool open = letter >= 'A' && letter <= 'Z', is_cast = node->op == &mix_op_cast;
    if (done[(unsigned char)letter]) continue;
    done[(unsigned char)letter] = 1;
    int inputs = 0, outputs = 0;
    for (int k = 0; k < node->input_count; k++)
      if (letters[k] == letter) v->ports[inputs++] = k;
    for (int k = node->input_count; k < count; k++)
      if (letters[k] == letter) v->ports[inputs + outputs++] = k - node->input_count;
    mix_dtype dtype =
        v->ir->values[i < node->input_count ? node->inputs[i] : node->first_output + i - node->input_count]
            .dtype;
    char id[32];
    if (!open) /* 'i' and 'l' may both be int64 */
      snprintf(id, sizeof id, "=%c:%s", letter, mix_dtype_name(dtype));
    else
      snprintf(id, sizeof id, is_cast ? "%c%sT" : "%c", letter, letter == 'S' ? "rc" : "st");
    if (!add_type(v, id, dtype, open ? (unsigned)float_bits(node->op, variable) : 0, inputs, outputs))
      return false;
    variable += open;
  }
  return true;
}

static bool add_node(view *v, int n) {
  static const char *const sources[] = {
      [MIX_IR_ARGUMENT] = "_Arg", [MIX_IR_VARIABLE] = "ReadVariableOp", [MIX_IR_CONSTANT] = "Const"};
  const mix_ir_node *node = &v->ir->nodes[n];
  const char *own = node->source == MIX_IR_VARIABLE ? v->ir->variables[node->index].variable->name : NULL;
  char name[256];
  snprintf(name, sizeof name, "%.100s%s%.100s_%d", node->scope ? node->scope : "", node->scope ? "/" : "",
           own ? own : node->op->name, n);
  mix_amp_node_spec spec = {.name = name, .op = node->op->tf_name ? node->op->tf_name : node->op->name};
  spec.preserved = node->keep;
  spec.stateful = (node->op->flags & MIX_OP_STATEFUL) != 0;
  if (node->source != MIX_IR_COMPUTED) {
    spec.op = sources[node->source];
    v->ports[0] = 0;
    return (v->graph_node[n] = mix_amp_graph_add_node(v->graph, &spec)) >= 0 &&
           add_type(v, "dtype", v->ir->values[node->first_output].dtype, 0, 0, 1);
  }
  char small[64], *letters = small;
  int max = node->input_count + node->output_count;
  if (max > (int)sizeof small && !(letters = mix_alloc((size_t)max))) return false;
  int count = node->body ? loop_letters(v->ir, node, letters) : signature_letters(node, letters, max);
  spec.input_count = node->input_count;
  if (count < 0)
    mix_fail_internal("compile: %d operands do not fit the signature %s of %s", node->input_count,
                      node->op->signature, node->op->name);
  bool good = count >= 0 && (v->graph_node[n] = mix_amp_graph_add_node(v->graph, &spec)) >= 0 &&
              add_letters(v, node, letters, count);
  if (letters != small) mix_free(letters);
  return good;
}

static bool connect(view *v, int graph_node, int input, int value) {
  const mix_ir_value *from = &v->ir->values[value];
  return mix_amp_graph_connect(v->graph, graph_node, input, v->graph_node[from->node], from->output);
}

/* A value that leaves the function keeps its dtype: its reader is an unlisted, preserved node. */
static bool add_end(view *v, const char *op, const char *variable, int number, int value) {
  char name[160];
  snprintf(name, sizeof name, "%.100s%s%s_%d", variable ? variable : "", variable ? "/" : "", op, number);
  int node = mix_amp_graph_add_node(
      v->graph, &(const mix_amp_node_spec){.name = name, .op = op, .input_count = 1, .preserved = true});
  v->ports[0] = 0;
  return node >= 0 && add_type(v, "T", v->ir->values[value].dtype, 0, 1, 0) && connect(v, node, 0, value);
}

static bool make_graph(view *v) {
  mix_ir *ir = v->ir;
  int max = 1;
  for (int n = 0; n < ir->node_count; n++)
    if (ir->nodes[n].input_count + ir->nodes[n].output_count > max)
      max = ir->nodes[n].input_count + ir->nodes[n].output_count;
  v->graph = mix_amp_graph_new(ir->name ? ir->name : "function");
  v->graph_node = mix_ir_ints(ir, ir->node_count + 1);
  v->node = mix_ir_ints(ir, ir->node_count + 1);
  v->ports = mix_ir_ints(ir, max);
  if (!v->graph || !v->graph_node || !v->node || !v->ports) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (ir->nodes[n].dead) continue;
    if (!add_node(v, n)) return false;
    v->node[v->graph_node[n]] = n;
  }
  for (int n = 0; n < ir->node_count; n++)
    for (int i = 0; !ir->nodes[n].dead && i < ir->nodes[n].input_count; i++)
      if (!connect(v, v->graph_node[n], i, ir->nodes[n].inputs[i])) return false;
  v->first_result = v->graph->node_count;
  for (int i = 0; i < ir->result_count; i++)
    if (!add_end(v, "_Retval", NULL, i, ir->results[i])) return false;
  for (int i = 0; i < ir->variable_count; i++)
    if (!add_end(v, "AssignVariableOp", ir->variables[i].variable->name, i, ir->variables[i].exit))
      return false;
  return mix_amp_graph_finish(v->graph);
}

/* ---- applying the decisions ---- */

static bool set_dtype(mix_ir *ir, mix_ir_node *node, int output, mix_dtype dtype) {
  ir->values[node->first_output + output].dtype = dtype;
  for (size_t i = 0; i < sizeof dtype_attributes / sizeof *dtype_attributes; i++) {
    if (dtype_attributes[i].op != node->op) continue;
    char *attributes = mix_ir_alloc(ir, node->op->attributes_size);
    if (!attributes) return false;
    memcpy(attributes, node->attributes, node->op->attributes_size);
    memcpy(attributes + dtype_attributes[i].offset, &dtype, sizeof dtype);
    node->attributes = attributes;
  }
  return true;
}

static int64_t bytes_of(const mix_ir *ir, int value) {
  return (int64_t)mix_value_bytes(ir->values[value].dtype, ir->values[value].shape);
}

static bool change_dtypes(view *v, mix_amp_result *r) {
  for (int g = 0; g < v->first_result; g++) {
    const mix_amp_node *node = &v->graph->nodes[g];
    for (int o = 0; o < node->as_is.output_count; o++) {
      int type = mix_amp_output_type(v->graph, node, &node->as_is, o);
      if (r->after[type] == v->graph->types[type].dtype) continue;
      int value = v->ir->nodes[v->node[g]].first_output + o;
      r->bytes_saved += bytes_of(v->ir, value);
      if (!set_dtype(v->ir, &v->ir->nodes[v->node[g]], o,
                     mix_dtype_from_name(mix_amp_dtype_name(r->after[type]))))
        return false;
      r->bytes_saved -= bytes_of(v->ir, value);
    }
  }
  return true;
}

/* Makes an input read another value. */
static void redirect(view *v, int input, int value) {
  int g = v->graph->inputs[input].node, end = g - v->first_result;
  if (end < 0)
    v->ir->nodes[v->node[g]].inputs[input - v->graph->nodes[g].first_input] = value;
  else if (end < v->ir->result_count)
    v->ir->results[end] = value;
  else
    v->ir->variables[end - v->ir->result_count].exit = value;
}

static bool insert_casts(view *v, mix_amp_result *r) {
  if (!(v->inserted = mix_ir_ints(v->ir, r->cast_count + 1))) return false;
  for (int c = 0; c < r->cast_count; c++) {
    const mix_amp_cast *cast = &r->casts[c];
    int producer = v->node[cast->node], from = v->ir->nodes[producer].first_output + cast->port;
    const mix_dtype dtype = mix_dtype_from_name(mix_amp_dtype_name(cast->dtype));
    v->inserted[c] = mix_ir_add_cast(v->ir, from, dtype, v->ir->nodes[producer].scope);
    if (v->inserted[c] < 0) return false;
    for (int u = cast->first_use; u < cast->first_use + cast->use_count; u++)
      redirect(v, r->uses[u], v->inserted[c]);
  }
  return true;
}

/* Registers the casts with the cast watch. Must run before nodes are sorted. */
static bool watch_casts(view *v, mix_amp_result *r) {
  if (v->ir->replay) return true;
  v->own = mix_ir_ints(v->ir, v->graph->node_count + 1);
  for (int g = 0; v->own && g < v->graph->node_count; g++) {
    const mix_ir_node *node = g < v->first_result ? &v->ir->nodes[v->node[g]] : NULL;
    v->own[g] = node && node->op == &mix_op_cast ? node->first_output : -1;
  }
  return v->own && mix_cast_watch_begin(v->ir, r, v->inserted, v->own);
}

/* Writes the function before or after the rewrite as text to LOG_PATH, where TensorFlow writes its graphs. */
static bool write_graph(mix_ir *ir, const mix_amp_options *options, const char *when) {
  if (!options->log_path || ir->replay) return true;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char path[4096];
  int length =
      snprintf(path, sizeof path, "%s/graphdef_%s_%.200s_%lld.txt", options->log_path, when,
               ir->name ? ir->name : "function", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
  for (char *p = path + strlen(options->log_path) + 1; length < (int)sizeof path && *p; p++)
    if (*p == '/') *p = '_';
  const char *text = mix_ir_text(ir);
  FILE *file = text && length < (int)sizeof path ? fopen(path, "w") : NULL;
  bool good = file && fputs(text, file) >= 0;
  if (file && fclose(file) != 0) good = false;
  if (!good && !mix_failed()) mix_fail_io("mixed precision rewrite: cannot write %s (LOG_PATH)", path);
  return good;
}

bool mix_pass_amp(mix_ir *ir) {
  mix_dtype target = mix_amp_target();
  mix_amp_options options;
  /* eager evaluation has no graph to rewrite */
  if (target == MIX_DTYPE_NONE || ir->eager) return true;
  for (int n = 0; n < ir->node_count; n++) /* a graph read from text is rewritten and fused already */
    if (ir->nodes[n].program) return true;
  if (!mix_amp_setting_options(target, &options)) return false;
  mix_scope *scope = mix_scope_begin();
  view v = {.ir = ir};
  bool ready = scope && write_graph(ir, &options, "preop") && make_graph(&v);
  mix_amp_result *result = ready ? mix_amp_rewrite(v.graph, &options) : NULL;
  bool good = result && change_dtypes(&v, result) && insert_casts(&v, result) && watch_casts(&v, result) &&
              (!result->cast_count || mix_ir_sort(ir)) && write_graph(ir, &options, "AutoMixedPrecision");
  mix_scope_end(scope);
  return good && !mix_failed();
}
