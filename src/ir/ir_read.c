/* Reads the text form of the ir. Values keep their numbers, so writing it again gives the same text. The
 * text is not trusted: whatever is accepted is safe to run. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "ir/ir.h"
#include "ops/attributes.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

enum { MAX_RESULTS = 256, WORD_SIZE = 512, PROBLEM_SIZE = 700, SPARE_NUMBERS = 65536, MAX_NESTED = 16 };

typedef struct reading {
  mix_ir *ir;
  const char *name;
  size_t size, bytes_left; /* of the text; of variables and constants still allowed */
  mix_scan line;
  int number;          /* line number */
  char subject[96];    /* the node of the line, for messages: " (%5 = add)" */
  int node, node_line; /* the node that a program may follow; -1: none */
  mix_program_reading *program;
  mix_text body; /* the lines of the node's body so far, without their bars */
  int body_line; /* where they begin */
  int depth;     /* of bodies around this graph */
  bool ended;
} reading;

static bool MIX_PRINTF(2, 3) fail(reading *r, const char *format, ...) {
  char problem[PROBLEM_SIZE];
  if (mix_failed()) return false; /* out of memory */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem, sizeof problem, format, arguments);
  va_end(arguments);
  return mix_fail_format("graph text %s, line %d%s: %s", r->name, r->number, r->subject, problem);
}

/* ---- values ---- */

static bool scan_number(reading *r, int *value) {
  int64_t number;
  if (!mix_scan_text(&r->line, "%") || !mix_scan_integer(&r->line, &number) || number < 0)
    return fail(r, "expected a value, such as %%3");
  if ((uint64_t)number >= r->size + SPARE_NUMBERS)
    return fail(r, "value %%%" PRId64 ": number values from %%0 on", number);
  *value = (int)number;
  return true;
}

/* A value that has been defined. */
static bool scan_value(reading *r, int *value) {
  if (!scan_number(r, value)) return false;
  if (*value < r->ir->value_count && r->ir->values[*value].node >= 0) return true;
  return fail(r, "value %%%d is not defined before it is used", *value);
}

static bool scan_values(reading *r, const char *end, int **values, int *count) {
  int capacity = 0;
  *values = NULL;
  *count = 0;
  if (end ? mix_scan_text(&r->line, end) : mix_scan_done(&r->line)) return true;
  do {
    if (!mix_reserve(values, &capacity, *count + 1, sizeof **values) || !scan_value(r, &(*values)[*count]))
      return false;
    ++*count;
  } while (mix_scan_text(&r->line, ","));
  if (end ? mix_scan_text(&r->line, end) : mix_scan_done(&r->line)) return true;
  return fail(r, "expected ',' or the end of the list of values");
}

typedef struct result_list {
  int first, count;
  mix_type types[MAX_RESULTS];
} result_list;

/* "%4:float32(2, 3), %5:bool() =" */
static bool scan_results(reading *r, result_list *h) {
  h->count = 0;
  do {
    int value = -1;
    if (h->count == MAX_RESULTS) return fail(r, "more than %d results", MAX_RESULTS);
    mix_type *type = &h->types[h->count];
    *type = (mix_type){0};
    if (!scan_number(r, &value)) return false;
    if (h->count == 0) h->first = value;
    snprintf(r->subject, sizeof r->subject, " (%%%d)", h->first);
    if (value != h->first + h->count)
      return fail(r, "result %%%d: the results of a node are numbered one after the other", value);
    if (value < r->ir->value_count && r->ir->values[value].node >= 0)
      return fail(r, "value %%%d is defined twice", value);
    if (!mix_scan_text(&r->line, ":") || !mix_scan_dtype(&r->line, &type->dtype))
      return fail(r, "expected ':' and a dtype, such as float32, behind %%%d", value);
    if (!mix_scan_shape(&r->line, &type->shape) || mix_shape_checked_size(type->shape) < 0)
      return fail(r, "expected a shape, such as (2, 3), of a size that can be, behind the dtype of %%%d",
                  value);
    h->count++;
  } while (mix_scan_text(&r->line, ","));
  return mix_scan_text(&r->line, "=") || fail(r, "expected '='");
}

/* Adds the node with the value numbers of the text; NULL with the error recorded. */
static mix_ir_node *add_node(reading *r, const result_list *h, const mix_op *op, const void *attributes,
                             int count, const int *inputs) {
  mix_ir *ir = r->ir;
  int end = ir->value_count;
  if (!mix_reserve(&ir->values, &ir->value_capacity, h->first + h->count, sizeof *ir->values)) return NULL;
  for (; end < h->first; end++) ir->values[end] = (mix_ir_value){.node = -1};
  ir->value_count = h->first;
  int node = mix_ir_add(ir, op, attributes, count, inputs, h->count, h->types);
  if (ir->value_count < end) ir->value_count = end;
  return node < 0 ? NULL : &ir->nodes[node];
}

/* ---- constants, arguments and variables ---- */

static bool take_bytes(reading *r, mix_dtype dtype, mix_shape shape) {
  size_t bytes = mix_value_bytes(dtype, shape);
  if (bytes > r->bytes_left) return fail(r, "its %zu bytes are more than may be made up", bytes);
  r->bytes_left -= bytes;
  return true;
}

static bool scan_element(reading *r, void *data, mix_dtype dtype, int64_t index) {
  double x;
  uint64_t bits;
  int64_t n;
  size_t size = mix_dtype_size(dtype);
  if (!mix_dtype_is_floating(dtype)) {
    if (!mix_scan_integer(&r->line, &n)) return fail(r, "expected an integer of %s", mix_dtype_name(dtype));
    mix_store_integer(data, dtype, index, n);
    if (mix_load_integer(data, dtype, index) != n)
      return fail(r, "%" PRId64 " is no %s", n, mix_dtype_name(dtype));
    return true;
  }
  if (mix_scan_bits(&r->line, &bits)) {
    if (size < 8 && bits >> (8 * size)) return fail(r, "more bits than %s has", mix_dtype_name(dtype));
    memcpy((char *)data + (size_t)index * size, &bits, size); /* little-endian, as in the whole library */
    return true;
  }
  if (!mix_scan_number(&r->line, &x)) return fail(r, "expected a number of %s", mix_dtype_name(dtype));
  mix_store_double(data, dtype, index, x);
  return true;
}

static bool scan_elements(reading *r, void *data, mix_dtype dtype, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if ((i && !mix_scan_text(&r->line, ",") && !fail(r, "expected %" PRId64 " numbers", count)) ||
        !scan_element(r, data, dtype, i))
      return false;
  return mix_scan_text(&r->line, "]") || fail(r, "expected %" PRId64 " numbers and ']'", count);
}

static bool read_constant(reading *r, const result_list *h) {
  mix_dtype dtype = h->types[0].dtype;
  mix_shape shape = h->types[0].shape;
  int64_t count = mix_shape_size(shape), seed = 0;
  if (!take_bytes(r, dtype, shape)) return false;
  mix_memory *memory = mix_memory_new(&mix_host_memory, mix_value_bytes(dtype, shape));
  bool held = memory && mix_ir_hold(r->ir, memory);
  mix_release(memory);
  void *data = held ? mix_memory_map(memory, MIX_MAP_WRITE) : NULL;
  if (!data) return false;
  bool good;
  if (mix_scan_text(&r->line, "seed")) {
    if (!mix_scan_integer(&r->line, &seed) || seed < 1 || seed > INT_MAX)
      return fail(r, "expected a seed from 1 to %d", INT_MAX);
    mix_ir_fill(data, dtype, count, (uint64_t)seed);
    good = true;
  } else if (mix_scan_text(&r->line, "all")) {
    size_t element = mix_dtype_size(dtype);
    good = count > 0 ? scan_element(r, data, dtype, 0) : fail(r, "there are no elements");
    for (int64_t i = 1; i < count && good; i++) memcpy((char *)data + (size_t)i * element, data, element);
  } else if (mix_scan_text(&r->line, "["))
    good = scan_elements(r, data, dtype, count);
  else
    good = shape.rank == 0 ? scan_element(r, data, dtype, 0)
                           : fail(r, "expected '[numbers]', 'all NUMBER' or 'seed NUMBER'");
  mix_memory_unmap(memory);
  mix_ir_node *node = good ? add_node(r, h, &mix_op_constant, NULL, 0, NULL) : NULL;
  if (!node) return false;
  node->source = MIX_IR_CONSTANT;
  node->memory = memory;
  node->index = (int)seed;
  return true;
}

static bool read_argument(reading *r, const result_list *h) {
  int64_t index;
  if (!mix_scan_integer(&r->line, &index) || index < 0 || index >= INT_MAX)
    return fail(r, "expected the number of the argument");
  for (int n = 0; n < r->ir->node_count; n++)
    if (r->ir->nodes[n].source == MIX_IR_ARGUMENT && r->ir->nodes[n].index == index)
      return fail(r, "argument %" PRId64 " is there twice", index);
  mix_ir_node *node = add_node(r, h, &mix_op_placeholder, NULL, 0, NULL);
  if (!node) return false;
  node->source = MIX_IR_ARGUMENT;
  node->index = (int)index;
  r->ir->argument_count++;
  return true;
}

/* Binds a variable to the value; consumes the reference. */
static bool add_variable(reading *r, const result_list *h, mix_variable *variable) {
  mix_ir *ir = r->ir;
  mix_ir_node *node = NULL;
  if (variable &&
      mix_reserve(&ir->variables, &ir->variable_capacity, ir->variable_count + 1, sizeof *ir->variables))
    node = add_node(r, h, &mix_op_placeholder, NULL, 0, NULL);
  if (!node) {
    mix_release(variable);
    return false;
  }
  node->source = MIX_IR_VARIABLE;
  node->index = ir->variable_count;
  ir->variables[ir->variable_count++] =
      (mix_ir_variable){.variable = variable, .entry = h->first, .exit = h->first, .guard = -1};
  return true;
}

static bool read_variable(reading *r, const result_list *h) {
  char name[WORD_SIZE];
  uint64_t seed = 0;
  if (!mix_scan_word(&r->line, name, sizeof name))
    return fail(r, "expected the name of the variable in single quotes");
  if (!take_bytes(r, h->types[0].dtype, h->types[0].shape)) return false;
  mix_variable *variable = mix_object_new(sizeof *variable, &mix_variable_class);
  if (!variable) return false;
  variable->name = mix_intern(name);
  variable->dtype = h->types[0].dtype;
  variable->shape = h->types[0].shape;
  variable->trainable = mix_dtype_is_floating(variable->dtype);
  size_t bytes = mix_value_bytes(variable->dtype, variable->shape);
  mix_memory *memory = variable->name ? mix_memory_new(&mix_host_memory, bytes) : NULL;
  variable->memory = memory;
  if (!memory) {
    mix_release(variable);
    return false;
  }
  for (const char *c = name; *c; c++) seed = seed * 31 + (unsigned char)*c;
  void *data = mix_memory_map(variable->memory, MIX_MAP_WRITE);
  if (data) mix_ir_fill(data, variable->dtype, mix_shape_size(variable->shape), seed);
  if (data) mix_memory_unmap(variable->memory);
  return add_variable(r, h, variable);
}

/* The hidden 16-bit copy of a variable, or the float32 copy "rounded" to 16 bits. */
static bool read_copy(reading *r, const result_list *h) {
  int of, original = 0;
  if (!scan_value(r, &of)) return false;
  while (original < r->ir->variable_count && r->ir->variables[original].entry != of) original++;
  if (original == r->ir->variable_count || r->ir->variables[original].variable->original)
    return fail(r, "%%%d is not a variable that has copies", of);
  mix_variable *variable = r->ir->variables[original].variable;
  mix_dtype dtype = h->types[0].dtype, held = dtype;
  bool widened = mix_scan_text(&r->line, "rounded");
  if (widened && (!mix_scan_dtype(&r->line, &dtype) || held != MIX_FLOAT32))
    return fail(r, "expected a float32 copy and the dtype that its numbers are rounded to");
  if ((dtype != MIX_FLOAT16 && dtype != MIX_BFLOAT16) || dtype == variable->dtype ||
      !mix_dtype_is_floating(variable->dtype) || !mix_shape_equal(h->types[0].shape, variable->shape))
    return fail(r, "a copy has the shape of its floating variable and is float16 or bfloat16");
  if (!take_bytes(r, held, variable->shape)) return false;
  mix_variable *copy = mix_variable_copy(variable, dtype, widened);
  if (!copy) return false;
  for (int i = 0; i < r->ir->variable_count; i++)
    if (r->ir->variables[i].variable == copy)
      return fail(r, "the %s copy of %%%d is there twice", mix_dtype_name(dtype), of);
  mix_variable_refresh(copy);
  return add_variable(r, h, mix_retain(copy));
}

/* ---- operations ---- */

static bool read_attributes(reading *r, const mix_op *op, void **attributes) {
  char problem[PROBLEM_SIZE];
  *attributes = NULL;
  if (op->attributes_size && !(*attributes = mix_ir_alloc(r->ir, op->attributes_size))) return false;
  bool braces = mix_scan_text(&r->line, "{");
  const char *close = braces ? memchr(r->line.at, '}', (size_t)(r->line.end - r->line.at)) : r->line.at;
  if (!close) return fail(r, "expected '}' behind the attributes");
  mix_scan inside = {r->line.at, close};
  if (!op->attributes_size && braces) return fail(r, "%s has no attributes", op->name);
  if (op->attributes_size && !mix_attributes_read(op, *attributes, &inside, problem, sizeof problem))
    return fail(r, "%s", problem);
  r->line.at = close + braces;
  return true;
}

static bool read_tail(reading *r, mix_ir_node *node) {
  if (mix_scan_text(&r->line, "if")) {
    if (!scan_value(r, &node->guard)) return false;
    const mix_ir_value *guard = &r->ir->values[node->guard];
    if (guard->dtype != MIX_BOOL || guard->shape.rank)
      return fail(r, "the condition %%%d is no bool()", node->guard);
  }
  node->keep = mix_scan_text(&r->line, "keep");
  if (mix_scan_text(&r->line, "@")) {
    char scope[WORD_SIZE];
    if (!mix_scan_word(&r->line, scope, sizeof scope) || !*scope)
      return fail(r, "expected the name of a layer behind '@'");
    if (!(node->scope = mix_intern(scope))) return false;
  }
  return mix_scan_done(&r->line) ||
         fail(r, "what is '%.*s'?", (int)(r->line.end - r->line.at < 40 ? r->line.end - r->line.at : 40),
              r->line.at);
}

static bool read_operation(reading *r, const result_list *h, const char *name) {
  const mix_op *op = !strcmp(name, mix_op_fused.name) ? &mix_op_fused : mix_op_by_name(name);
  if (!op || (op->flags & MIX_OP_SOURCE)) return fail(r, "there is no operation '%s'", name);
  if (!mix_scan_text(&r->line, "(")) return fail(r, "expected '(' and the operands");
  int *inputs = NULL, count = 0;
  void *attributes;
  bool good = scan_values(r, ")", &inputs, &count) && read_attributes(r, op, &attributes);
  mix_ir_node *node = good ? add_node(r, h, op, attributes, count, inputs) : NULL;
  mix_free(inputs);
  if (!node) return false;
  r->node = (int)(node - r->ir->nodes);
  r->node_line = r->number;
  mix_program_read_begin(r->program);
  return true;
}

static bool read_graph(reading *r, const char *text, size_t size);

/* The graph of the body's lines, which takes its part of the bytes. */
static bool attach_body(reading *r) {
  mix_ir *ir = r->ir;
  reading inside = {.ir = mix_ir_new(),
                    .name = r->name,
                    .size = r->size,
                    .bytes_left = r->bytes_left,
                    .node = -1,
                    .number = r->body_line - 1,
                    .depth = r->depth + 1,
                    .program = mix_alloc(sizeof *inside.program)};
  bool good = inside.ir && inside.program && !r->body.failed;
  if (good && inside.depth > MAX_NESTED) good = fail(r, "bodies inside bodies, %d deep", inside.depth);
  good = good && read_graph(&inside, r->body.text, r->body.used);
  if (good && inside.ir->variable_count) good = fail(r, "a body has no variables of its own");
  mix_free(inside.program);
  mix_free(inside.body.text);
  mix_free(r->body.text);
  r->body = (mix_text){.grows = true};
  r->bytes_left = inside.bytes_left;
  if (!good) return mix_ir_free(inside.ir), false;
  return mix_ir_set_body(ir, r->node, inside.ir);
}

/* Attaches the program and the body that were read, if any, to the preceding node, and checks the node. */
static bool finish_node(reading *r) {
  char problem[PROBLEM_SIZE];
  if (r->node < 0) return true;
  mix_ir_node *node = &r->ir->nodes[r->node];
  const mix_program *read = &r->program->program;
  int line = r->number;
  if (r->program->begun) {
    mix_program *program = node->program = mix_ir_alloc(r->ir, sizeof *program);
    if (!program) return false;
    *program = *read;
    program->loads = mix_ir_array(r->ir, read->load_count + 1, sizeof *program->loads);
    program->instructions = mix_ir_array(r->ir, read->instruction_count + 1, sizeof *program->instructions);
    program->stores = mix_ir_array(r->ir, read->store_count + 1, sizeof *program->stores);
    program->sums = mix_ir_array(r->ir, read->sum_count + 1, sizeof *program->sums);
    if (!program->loads || !program->instructions || !program->stores || !program->sums) return false;
    memcpy(program->loads, read->loads, sizeof *read->loads * (size_t)read->load_count);
    memcpy(program->instructions, read->instructions,
           sizeof *read->instructions * (size_t)read->instruction_count);
    memcpy(program->stores, read->stores, sizeof *read->stores * (size_t)read->store_count);
    memcpy(program->sums, read->sums, sizeof *read->sums * (size_t)read->sum_count);
  }
  if (r->body.used && !attach_body(r)) return false;
  r->number = r->node_line;
  snprintf(r->subject, sizeof r->subject, " (%%%d = %s)", node->first_output, node->op->name);
  if (!mix_ir_check(r->ir, node, problem, sizeof problem)) return fail(r, "%s", problem);
  r->number = line;
  r->subject[0] = 0;
  r->node = -1;
  return true;
}

/* ---- lines ---- */

static bool read_node(reading *r) {
  result_list h;
  char name[64];
  if (!scan_results(r, &h)) return false;
  if (!mix_scan_name(&r->line, name, sizeof name))
    return fail(r, "expected an operation, argument, variable, copy or constant");
  snprintf(r->subject, sizeof r->subject, " (%%%d = %s)", h.first, name);
  bool (*const source)(reading *, const result_list *) = !strcmp(name, "argument")   ? read_argument
                                                         : !strcmp(name, "variable") ? read_variable
                                                         : !strcmp(name, "copy")     ? read_copy
                                                         : !strcmp(name, "constant") ? read_constant
                                                                                     : NULL;
  if (source && h.count != 1) return fail(r, "%s has one result", name);
  if (!(source ? source(r, &h) : read_operation(r, &h, name))) return false;
  mix_ir_node *node = &r->ir->nodes[r->ir->node_count - 1];
  return read_tail(r, node) && (node->guard < 0 || !source || fail(r, "%s stands under no condition", name));
}

/* "store %1 'w' = %8 if %3" */
static bool read_store(reading *r) {
  char name[WORD_SIZE];
  int entry, i = 0;
  mix_ir *ir = r->ir;
  snprintf(r->subject, sizeof r->subject, " (store)");
  if (!scan_value(r, &entry)) return false;
  while (i < ir->variable_count && ir->variables[i].entry != entry) i++;
  if (i == ir->variable_count) return fail(r, "%%%d is no variable", entry);
  mix_ir_variable *variable = &ir->variables[i];
  snprintf(r->subject, sizeof r->subject, " (store '%.60s')", variable->variable->name);
  if (variable->exit != variable->entry) return fail(r, "the variable is stored twice");
  if (!mix_scan_word(&r->line, name, sizeof name) || strcmp(name, variable->variable->name) != 0)
    return fail(r, "%%%d is the variable '%s'", entry, variable->variable->name);
  if (!mix_scan_text(&r->line, "=") || !scan_value(r, &variable->exit))
    return fail(r, "expected '=' and a value");
  const mix_ir_value *value = &ir->values[variable->exit];
  if (value->dtype != variable->variable->dtype || !mix_shape_equal(value->shape, variable->variable->shape))
    return fail(r, "%%%d has another dtype or shape than the variable", variable->exit);
  if (variable->exit == entry) return fail(r, "the variable would keep its value; such a line is left out");
  if (mix_scan_text(&r->line, "if")) {
    if (!scan_value(r, &variable->guard)) return false;
    const mix_ir_value *guard = &ir->values[variable->guard];
    const mix_ir_node *decides = &ir->nodes[guard->node];
    if (guard->dtype != MIX_BOOL || guard->shape.rank)
      return fail(r, "the condition %%%d is no bool()", variable->guard);
    if (decides->source || (decides->op->flags & MIX_OP_VIEW) || ir->nodes[value->node].source)
      return fail(r, "condition and value must be computed");
  }
  return mix_scan_done(&r->line) || fail(r, "more than a store");
}

static bool read_return(reading *r) {
  int *values, count;
  mix_ir *ir = r->ir;
  snprintf(r->subject, sizeof r->subject, " (return)");
  bool good = scan_values(r, NULL, &values, &count) && (ir->results = mix_ir_ints(ir, count + 1));
  if (good && count) memcpy(ir->results, values, sizeof(int) * (size_t)count);
  mix_free(values);
  ir->result_count = good ? count : 0;
  r->ended = good;
  return good;
}

/* "eager" and "excess_precision" precede the first node. */
static bool set_flag(reading *r, bool *what) {
  if (*what || !mix_scan_done(&r->line))
    return fail(r, "expected 'eager' or 'excess_precision', each once and on a line of its own");
  return *what = true;
}

static bool add_body_line(reading *r) {
  if (r->node < 0) return fail(r, "a line behind a bar belongs to the body of a loop, behind its node");
  const char *at = r->line.at + 1;
  if (at < r->line.end && *at == ' ') at++;
  if (!r->body.used) r->body_line = r->number;
  r->body.grows = true;
  mix_text_put(&r->body, "%.*s\n", (int)(r->line.end - at), at);
  return !r->body.failed;
}

static bool read_line(reading *r, bool indented) {
  char problem[PROBLEM_SIZE];
  r->subject[0] = 0;
  if (r->ended) return fail(r, "more lines behind 'return'");
  if (r->line.at < r->line.end && *r->line.at == '|') return add_body_line(r);
  if (indented) {
    if (r->node < 0) return fail(r, "an indented line belongs to a program, behind an operation");
    snprintf(r->subject, sizeof r->subject, " (%%%d = %s)", r->ir->nodes[r->node].first_output,
             r->ir->nodes[r->node].op->name);
    return mix_program_read_line(r->program, &r->line, problem, sizeof problem) || fail(r, "%s", problem);
  }
  if (!finish_node(r)) return false;
  if (r->line.at < r->line.end && *r->line.at == '%') return read_node(r);
  if (mix_scan_text(&r->line, "store")) return read_store(r);
  if (mix_scan_text(&r->line, "return")) return read_return(r);
  bool first = r->ir->node_count == 0 && !r->depth;
  if (first && mix_scan_text(&r->line, "eager")) return set_flag(r, &r->ir->eager);
  if (first && mix_scan_text(&r->line, "excess_precision")) return set_flag(r, &r->ir->excess_precision);
  return fail(r, "expected '%%N:dtype(shape) = ...', 'store' or 'return'");
}

static bool read_lines(reading *r, const char *text, size_t size) {
  for (const char *at = text, *end = text + size; at < end;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    r->number++;
    r->line = (mix_scan){at, stop > at && stop[-1] == '\r' ? stop - 1 : stop};
    bool indented = at < stop && (*at == ' ' || *at == '\t');
    at = stop < end ? stop + 1 : end;
    if (mix_scan_done(&r->line) || *r->line.at == '#') continue; /* empty, or a comment */
    if (!read_line(r, indented)) return false;
  }
  if (!r->ended && finish_node(r)) {
    r->subject[0] = 0;
    return fail(r, "the text ends without 'return'");
  }
  return r->ended;
}

static bool arguments_complete(reading *r) {
  for (int n = 0; n < r->ir->node_count; n++) {
    const mix_ir_node *node = &r->ir->nodes[n];
    if (node->source != MIX_IR_ARGUMENT || node->index < r->ir->argument_count) continue;
    snprintf(r->subject, sizeof r->subject, " (%%%d = argument)", node->first_output);
    return fail(r, "argument %d, but there are %d: number them from 0", node->index, r->ir->argument_count);
  }
  return true;
}

static bool read_graph(reading *r, const char *text, size_t size) {
  bool good = read_lines(r, text, size) && arguments_complete(r);
  for (int v = 0; good && v < r->ir->value_count; v++)
    if (r->ir->values[v].node < 0) /* like the values of dead nodes */
      r->ir->values[v] = (mix_ir_value){.dtype = MIX_BOOL, .node = 0};
  return good;
}

mix_ir *mix_ir_read(const char *name, const char *text, size_t size, size_t max_bytes) {
  if (mix_failed()) return NULL;
  reading r = {.ir = mix_ir_new(),
               .name = name,
               .size = size,
               .bytes_left = max_bytes,
               .node = -1,
               .program = mix_alloc(sizeof *r.program)};
  bool good = r.ir && r.program && read_graph(&r, text, size);
  mix_free(r.program);
  mix_free(r.body.text);
  if (good) return r.ir;
  mix_ir_free(r.ir);
  return NULL;
}
