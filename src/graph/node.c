#include "graph/node.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/lock.h"
#include "graph/variable.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

static atomic_uint_fast64_t next_sequence = 1;

int mix_node_index(mix_node *const *nodes, int count, const mix_node *node) {
  int low = 0, high = count - 1;
  while (low <= high) {
    const int middle = (low + high) / 2;
    const uint64_t sequence = nodes[middle]->sequence;
    if (sequence == node->sequence) return middle;
    if (sequence < node->sequence)
      low = middle + 1;
    else
      high = middle - 1;
  }
  return -1;
}

uint64_t mix_node_next_sequence(void) { return atomic_load_explicit(&next_sequence, memory_order_relaxed); }

static void node_finalize(void *object) {
  mix_node *node = object;
  for (int i = 0; i < node->input_count; i++) mix_release(node->inputs[i].node);
  for (int i = 0; i < node->output_count; i++) mix_release(node->outputs[i].memory);
  mix_release(node->body);
  mix_release(node->segment);
  if (node->holds_variable) mix_release(node->variable);
}

static void tensor_finalize(void *object) {
  mix_tensor *tensor = object;
  mix_release(tensor->node);
  mix_release(tensor->history);
  mix_release(tensor->logits);
  mix_release(tensor->mask);
}

static const mix_class node_class = {.name = "node", .finalize = node_finalize};
const mix_class mix_tensor_class = {.name = "tensor", .finalize = tensor_finalize};

/* ---- operand dtypes against the signature ---- */

static bool dtype_in_class(mix_dtype dtype, const char *word, size_t length) {
  if (length == 5 && !strncmp(word, "float", 5)) return mix_dtype_is_real(dtype);
  if (length == 3 && !strncmp(word, "int", 3)) return mix_dtype_is_integer(dtype);
  if (length == 6 && !strncmp(word, "number", 6))
    return mix_dtype_is_real(dtype) || mix_dtype_is_integer(dtype);
  if (length == 3 && !strncmp(word, "any", 3)) return true;
  const char *name = mix_dtype_name(dtype);
  return strlen(name) == length && !strncmp(name, word, length);
}

/* The words that name the dtypes of type variable `number`: "float int32,any" has two lists. */
static const char *type_words(const char *types, int number, size_t *length) {
  while (types && number-- > 0) {
    types = strchr(types, ',');
    if (types) types++;
  }
  if (!types) return *length = 3, "any";
  return *length = strcspn(types, ","), types;
}

static bool dtype_allowed(mix_dtype dtype, const char *words, size_t length) {
  for (const char *end = words + length; words < end;) {
    size_t word = strcspn(words, " ,");
    if (words + word > end) word = (size_t)(end - words);
    if (word && dtype_in_class(dtype, words, word)) return true;
    words += word + 1;
  }
  return false;
}

bool mix_op_allows(const mix_op *op, int variable, mix_dtype dtype) {
  size_t length;
  const char *words = type_words(op->types, variable, &length);
  return mix_dtype_size(dtype) && dtype_allowed(dtype, words, length);
}

typedef struct type_binding {
  char letter;
  mix_dtype dtype;
  int operand;
} type_binding;

static mix_dtype fixed_dtype(char letter) {
  return letter == 'b' ? MIX_BOOL : letter == 'f' ? MIX_FLOAT32 : letter == 'l' ? MIX_INT64 : MIX_DTYPE_NONE;
}

static const char *edges_text(int count, const mix_edge *edges, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < count && used < size; i++) {
    const mix_value *value = &edges[i].node->outputs[edges[i].output];
    int n = snprintf(text + used, size - used, "%s%s %s",
                     i == 0           ? ""
                     : i == count - 1 ? " and "
                                      : ", ",
                     mix_dtype_name(value->dtype), MIX_SHAPE_TEXT(value->shape));
    if (n < 0) break;
    used += (size_t)n;
  }
  return text;
}

const char *mix_operands_text(int count, mix_tensor *const *tensors, char *text, size_t size) {
  mix_edge edges[8];
  int present = 0;
  for (int i = 0; i < count && present < 8; i++)
    if (tensors[i]) edges[present++] = (mix_edge){tensors[i]->node, tensors[i]->output};
  return edges_text(present, edges, text, size);
}

static const char *where(void) {
  static _Thread_local char text[160];
  if (!mix_graph_scope()) return "";
  snprintf(text, sizeof text, " (in layer %s)", mix_graph_scope());
  return text;
}

/* Binds the type letters to dtypes, and sets the result dtypes that follow from them. */
static bool check_types(mix_node *node) {
  type_binding bound[8];
  int bound_count = 0, operand = 0;
  const char *p = node->op->signature;
  char text[512];
  while (*p && *p != '-') {
    char letter = *p++;
    bool many = *p == '*';
    if (many) p++;
    if (*p == ',') p++;
    int last = many ? node->input_count : operand + 1;
    for (; operand < last; operand++) {
      if (operand >= node->input_count)
        return mix_fail_internal("%s: %d operands do not fit the signature %s", node->op->name,
                                 node->input_count, node->op->signature);
      mix_dtype dtype = mix_input_value(node, operand)->dtype;
      mix_dtype fixed = fixed_dtype(letter);
      if (fixed != MIX_DTYPE_NONE || letter == 'i') {
        bool fits = letter == 'i' ? dtype == MIX_INT32 || dtype == MIX_INT64 : dtype == fixed;
        if (!fits)
          return mix_fail_type("%s%s: operand %d is %s; expected %s", node->op->name, where(), operand,
                               mix_dtype_name(dtype),
                               letter == 'i' ? "int32 or int64" : mix_dtype_name(fixed));
        continue;
      }
      int b = 0;
      while (b < bound_count && bound[b].letter != letter) b++;
      if (b < bound_count) {
        if (bound[b].dtype == dtype) continue;
        return mix_fail_type(
            "%s%s: operands %s do not have one dtype; nothing is promoted by itself, cast one with mix_cast",
            node->op->name, where(), edges_text(node->input_count, node->inputs, text, sizeof text));
      }
      size_t length;
      const char *words = type_words(node->op->types, b, &length);
      if (!mix_dtype_size(dtype) || !dtype_allowed(dtype, words, length))
        return mix_fail_type(
            "%s%s: operand %d is %s; expected %.*s%s", node->op->name, where(), operand,
            mix_dtype_name(dtype), (int)length, words,
            mix_dtype_is_float8(dtype) ? "; nothing computes in float8, cast it with mix_cast" : "");
      if (bound_count < 8) bound[bound_count++] = (type_binding){letter, dtype, operand};
    }
  }
  if (operand != node->input_count)
    return mix_fail_internal("%s: %d operands do not fit the signature %s", node->op->name, node->input_count,
                             node->op->signature);
  p += 2;
  for (int i = 0; i < node->output_count; i++, p += p[1] == ',' ? 2 : 1) {
    node->outputs[i].dtype = fixed_dtype(*p);
    for (int b = 0; b < bound_count; b++)
      if (bound[b].letter == *p) node->outputs[i].dtype = bound[b].dtype;
  }
  return true;
}

static int signature_results(const char *signature) {
  const char *p = strstr(signature, "->");
  int count = 0;
  for (p = p ? p + 2 : ""; *p; p++) count += *p != ',';
  return count;
}

static mix_node *node_allocate(const mix_op *op, const void *attributes, int input_count,
                               const mix_edge *inputs, int output_count) {
  size_t inputs_at = (sizeof(mix_node) + 15) & ~(size_t)15;
  size_t outputs_at = inputs_at + sizeof(mix_edge) * (size_t)input_count;
  size_t attributes_at = outputs_at + sizeof(mix_value) * (size_t)output_count;
  mix_node *node = mix_object_new(attributes_at + op->attributes_size, &node_class);
  if (!node) return NULL;
  char *base = (char *)node;
  node->op = op;
  node->sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
  node->inputs = (mix_edge *)(base + inputs_at);
  node->outputs = (mix_value *)(base + outputs_at);
  node->attributes = op->attributes_size ? base + attributes_at : NULL;
  if (op->attributes_size && attributes) memcpy(node->attributes, attributes, op->attributes_size);
  node->input_count = input_count;
  node->output_count = output_count;
  node->scope = mix_graph_scope();
  node->segment = mix_retain(mix_segment_current());
  node->keep = mix_graph_keep() || (op->flags & MIX_OP_KEEP);
  node->backward = mix_graph_backward();
  node->capture = mix_capture_current();
  for (int i = 0; i < input_count; i++) {
    node->inputs[i] = inputs[i];
    mix_retain(inputs[i].node);
    node->symbolic |= inputs[i].node->symbolic;
  }
  return node;
}

static bool outputs_valid(mix_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const mix_value *value = &node->outputs[i];
    if (value->dtype == MIX_DTYPE_NONE)
      return mix_fail_internal("%s: result %d has no dtype", node->op->name, i);
    if (mix_shape_is_known(value->shape) ? mix_shape_checked_size(value->shape) < 0 : !node->symbolic)
      return mix_fail_value("%s%s: a result of shape %s is not possible", node->op->name, where(),
                            MIX_SHAPE_TEXT(value->shape));
  }
  return true;
}

/* A symbolic node is never computed. If it kept what it reads, each variable of a functional model would keep
 * its first value beside the present one. */
static void forget_inputs(mix_node *node) {
  for (int i = 0; i < node->input_count; i++) mix_release(node->inputs[i].node);
  node->input_count = 0;
  mix_release(node->body);
  node->body = NULL;
}

static mix_node *node_complete(mix_node *node, bool typed) {
  if (!typed || !outputs_valid(node) || !mix_tapes_record(node) || !mix_capture_record(node)) {
    if (!mix_failed()) mix_fail_internal("%s: shape rule failed without saying why", node->op->name);
    mix_release(node);
    return NULL;
  }
  if (node->symbolic && !(node->op->flags & MIX_OP_ROWS)) forget_inputs(node);
  return node;
}

mix_node *mix_node_new_with_body(const mix_op *op, const void *attributes, struct mix_body *body,
                                 int input_count, const mix_edge *inputs, int output_count,
                                 const mix_type *types) {
  if (mix_failed()) return NULL;
  mix_node *node = node_allocate(op, attributes, input_count, inputs, output_count);
  if (!node) return NULL;
  for (int i = 0; i < output_count; i++) node->outputs[i] = (mix_value){.type = types[i]};
  node->body = mix_retain(body);
  return node_complete(node, true);
}

mix_node *mix_node_new(const mix_op *op, const void *attributes, int input_count, const mix_edge *inputs) {
  if (mix_failed()) return NULL;
  mix_node *node = node_allocate(op, attributes, input_count, inputs, signature_results(op->signature));
  if (!node) return NULL;
  return node_complete(node, check_types(node) && (!op->infer || op->infer(node)));
}

mix_tensor *mix_tensor_of(mix_node *node, int output) {
  if (!node) return NULL;
  mix_tensor *tensor = mix_object_new(sizeof *tensor, &mix_tensor_class);
  if (!tensor) return NULL;
  tensor->node = mix_retain(node);
  tensor->output = output;
  return mix_scoped(tensor);
}

mix_tensor *mix_node_input(mix_node *node, int index) {
  return mix_tensor_of(node->inputs[index].node, node->inputs[index].output);
}

mix_tensor *mix_apply(const mix_op *op, const void *attributes, int input_count, mix_tensor *const *inputs) {
  if (mix_failed()) return NULL;
  mix_edge local[16], *edges = local;
  if (input_count > 16 && !(edges = mix_alloc(sizeof *edges * (size_t)input_count))) return NULL;
  mix_tensor *tensor = NULL;
  bool complete = true;
  for (int i = 0; i < input_count && complete; i++) {
    if (!inputs[i] || !mix_is(inputs[i], &mix_tensor_class)) {
      mix_fail_type("%s%s: operand %d is %s; expected a tensor", op->name, where(), i,
                    inputs[i] ? "another object" : "NULL");
      complete = false;
    } else if (inputs[i]->node->op->flags & MIX_OP_COMPLEX) {
      mix_fail_unsupported(
          "%s%s: operand %d is complex; take its real or imaginary part, its magnitude or its "
          "angle, which is all that is computed of such numbers",
          op->name, where(), i);
      complete = false;
    } else {
      edges[i] = (mix_edge){inputs[i]->node, inputs[i]->output};
    }
  }
  mix_node *node = complete ? mix_node_new(op, attributes, input_count, edges) : NULL;
  if (node) {
    tensor = mix_tensor_of(node, 0);
    mix_release(node);
  }
  if (edges != local) mix_free(edges);
  return tensor;
}

/* ---- sources ---- */

const mix_op mix_op_constant = {
    .name = "constant", .tf_name = "Const", .signature = "->T", .types = "any", .flags = MIX_OP_SOURCE};
const mix_op mix_op_placeholder = {.name = "placeholder",
                                   .tf_name = "Placeholder",
                                   .signature = "->T",
                                   .types = "any",
                                   .flags = MIX_OP_SOURCE};
/* Inside a capture it has one operand, the variable's current value; outside it has none and is finished. */
const mix_op mix_op_read = {.name = "read",
                            .tf_name = "ReadVariableOp",
                            .signature = "T->T",
                            .types = "any",
                            .flags = MIX_OP_SOURCE | MIX_OP_READ | MIX_OP_VIEW};

mix_node *mix_node_constant(mix_memory *memory, mix_dtype dtype, mix_shape shape) {
  mix_node *node = node_allocate(&mix_op_constant, NULL, 0, NULL, 1);
  if (!node) return NULL;
  node->outputs[0] = (mix_value){.dtype = dtype, .shape = shape, .memory = mix_retain(memory)};
  return node;
}

mix_node *mix_node_placeholder(mix_dtype dtype, mix_shape shape, bool symbolic) {
  mix_node *node = node_allocate(&mix_op_placeholder, NULL, 0, NULL, 1);
  if (!node) return NULL;
  node->outputs[0] = (mix_value){.dtype = dtype, .shape = shape};
  node->symbolic = symbolic;
  return node;
}

mix_node *mix_node_read(mix_variable *variable, const mix_edge *current, mix_memory *storage) {
  mix_node *node = node_allocate(&mix_op_read, NULL, current ? 1 : 0, current, 1);
  if (!node) return NULL;
  node->outputs[0] =
      (mix_value){.dtype = variable->dtype, .shape = variable->shape, .memory = mix_retain(storage)};
  node->variable = variable;
  node->holds_variable = current != NULL;
  if (node->holds_variable) mix_retain(variable);
  return node;
}

void mix_node_detach(mix_node *node) {
  if (node->op->flags & MIX_OP_ROWS) return;
  mix_graph_lock();
  bool done = !node->recorded;
  for (int i = 0; i < node->output_count && done; i++) done = node->outputs[i].memory != NULL;
  int count = done ? node->input_count : 0;
  node->input_count -= count;
  struct mix_body *body = done ? node->body : NULL;
  if (body) node->body = NULL;
  /* Unlock first: a release may run the caller's code (mix_tensor_wrap). */
  mix_graph_unlock();
  for (int i = 0; i < count; i++) mix_release(node->inputs[i].node);
  mix_release(body);
}
