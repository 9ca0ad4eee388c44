/* Runs a recorded graph on the library, node by node, as it is or with the casts and dtypes of a rewrite. A
 * while loop is run by asking for the value of a node in an iteration. */
#ifndef MIX_TESTS_SPEC_GRAPH_RUN_H
#define MIX_TESTS_SPEC_GRAPH_RUN_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <mixtape/mixtape.h>

#include "base/error.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITERATIONS = 16, MAX_PORTS = 8, MAX_INPUTS = 16, GRAPH_NODES = 128 };

typedef struct graph_run {
  const json_t *nodes;
  const json_t *rewrite; /* NULL: as recorded */
  int steps;             /* drawn numbers are multiples of 1 / steps */
  mix_tensor *value[GRAPH_NODES][MAX_ITERATIONS][MAX_PORTS];
} graph_run;

static mix_tensor *value_of(graph_run *run, const char *name, int iteration);

static const json_t *node_named(const graph_run *run, const char *name, size_t length, size_t *index) {
  for (*index = 0; *index < json_array_size(run->nodes); (*index)++) {
    const json_t *node = json_array_get(run->nodes, *index);
    const char *other = json_string_value(json_object_get(node, "name"));
    if (strlen(other) == length && !strncmp(other, name, length)) return node;
  }
  return NULL;
}
static const char *text_in(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  if (!text) fail_msg("no %s", key);
  return text;
}
static int64_t attribute(const json_t *node, const char *key, size_t index) {
  const json_t *value = json_object_get(json_object_get(node, "attrs"), key);
  if (json_is_array(value)) value = json_array_get(value, index);
  return json_is_true(value) ? 1 : json_integer_value(value);
}

/* ---- dtypes ---- */

/* Has the type vertex this port? */
static bool has_port(const json_t *type, const char *side, int port) {
  const json_t *ports = json_object_get(type, side);
  for (size_t i = 0; i < json_array_size(ports); i++)
    if (json_integer_value(json_array_get(ports, i)) == port) return true;
  return false;
}
/* The dtype of a port before or after the rewrite. */
static mix_dtype port_dtype(const graph_run *run, const json_t *node, const char *side, int port) {
  const json_t *changed = json_object_get(json_object_get(run->rewrite, "dtypes"), text_in(node, "name"));
  const char *id;
  json_t *type;
  json_object_foreach(json_object_get(node, "types"), id, type) {
    if (!has_port(type, side, port)) continue;
    const char *now = json_string_value(json_object_get(changed, id)), *was = text_in(type, "dtype");
    if (!strncmp(was, "ref:", 4)) was += 4;
    return mix_dtype_from_name(now ? now : was);
  }
  fail_msg("%s has no type for %s %d", text_in(node, "name"), side, port);
  return MIX_DTYPE_NONE;
}

/* ---- inputs, through the casts of the rewrite ---- */

static const json_t *cast_for(const graph_run *run, const char *node, size_t input) {
  const json_t *casts = json_object_get(run->rewrite, "casts");
  for (size_t c = 0; c < json_array_size(casts); c++) {
    const json_t *consumers = json_object_get(json_array_get(casts, c), "consumers");
    for (size_t i = 0; i < json_array_size(consumers); i++) {
      const json_t *pair = json_array_get(consumers, i);
      if (!strcmp(json_string_value(json_array_get(pair, 0)), node) &&
          json_integer_value(json_array_get(pair, 1)) == (json_int_t)input)
        return json_array_get(casts, c);
    }
  }
  return NULL;
}
static mix_tensor *input_of(graph_run *run, const json_t *node, size_t input, int iteration) {
  const char *name = text_in(node, "name"),
             *source = json_string_value(json_array_get(json_object_get(node, "inputs"), input));
  mix_tensor *value = value_of(run, source, iteration);
  const json_t *cast = cast_for(run, name, input);
  if (cast) value = mix_cast(value, mix_dtype_from_name(text_in(cast, "to_dtype")));
  mix_dtype wanted = port_dtype(run, node, "inputs", (int)input);
  if (mix_tensor_dtype(value) != wanted)
    fail_msg("input %zu of %s is %s, not %s", input, name, mix_dtype_name(mix_tensor_dtype(value)),
             mix_dtype_name(wanted));
  return value;
}
static size_t data_inputs(const json_t *node) {
  const json_t *inputs = json_object_get(node, "inputs");
  size_t count = 0;
  while (count < json_array_size(inputs) && json_string_value(json_array_get(inputs, count))[0] != '^')
    count++;
  return count;
}

/* ---- values ---- */

static mix_shape shape_in(const json_t *list) {
  mix_shape shape = {.rank = (int)json_array_size(list)};
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = json_integer_value(json_array_get(list, (size_t)i));
  return shape;
}
static mix_shape shape_from(mix_tensor *numbers) {
  double values[MIX_MAX_RANK] = {0};
  mix_shape shape = {.rank = (int)mix_shape_size(mix_tensor_shape(numbers))};
  mix_tensor_read(numbers, MIX_FLOAT64, values, shape.rank);
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = (int64_t)values[i];
  return shape;
}
static mix_axes axes_from(mix_tensor *numbers) {
  mix_shape shape = shape_from(numbers);
  mix_axes axes = {.count = shape.rank};
  for (int i = 0; i < shape.rank; i++) axes.axis[i] = (int)shape.dims[i];
  return axes;
}
/* Multiples of 1 / steps in (0, 1], so that inputs are float16 and bfloat16 numbers. Those of a weight have
 * both signs and are smaller by the root of its fan-in, so that values stay near 1. "eye" is the identity. */
static mix_tensor *drawn(const graph_run *run, const char *name, mix_shape shape, mix_dtype dtype,
                         bool weight) {
  int64_t count = mix_shape_size(shape), fan_in = 1;
  for (int i = 0; i + 1 < shape.rank; i++) fan_in *= shape.dims[i];
  double *values = calloc((size_t)count, sizeof *values),
         size = weight ? exp2(-floor(log2(sqrt((double)fan_in)))) : 1;
  uint32_t random = 2463534242u + (uint32_t)strlen(name);
  for (int64_t i = 0; i < count; i++) {
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    values[i] = (1 + random % run->steps) / (double)run->steps * size * (weight && random >> 31 ? -1 : 1);
    if (!strcmp(name, "eye")) values[i] = i / shape.dims[1] == i % shape.dims[1];
  }
  mix_tensor *tensor = mix_tensor_from_doubles(values, dtype, shape);
  free(values);
  return tensor;
}
static mix_tensor *constant(const graph_run *run, const json_t *node) {
  const json_t *value = json_object_get(node, "value"), *data = json_object_get(value, "data");
  mix_dtype dtype = port_dtype(run, node, "outputs", 0);
  mix_shape shape = shape_in(json_object_get(value, "shape"));
  if (!data) return drawn(run, text_in(node, "name"), shape, dtype, true);
  double numbers[8] = {0};
  for (size_t i = 0; i < json_array_size(data); i++) numbers[i] = json_number_value(json_array_get(data, i));
  return mix_tensor_from_doubles(numbers, dtype, shape);
}

/* ---- windows: convolutions and pools of stride 1 or 2 with the padding SAME, as slices ---- */

/* x moved by (row, column), each stride-th element, of the output's size. */
static mix_tensor *moved(mix_tensor *padded, mix_shape out, int row, int column, int stride) {
  double rows[64], columns[64];
  for (int i = 0; i < out.dims[1]; i++) rows[i] = row + i * stride;
  for (int i = 0; i < out.dims[2]; i++) columns[i] = column + i * stride;
  mix_tensor *r = mix_tensor_from_doubles(rows, MIX_INT32, MIX_SHAPE(out.dims[1])),
             *c = mix_tensor_from_doubles(columns, MIX_INT32, MIX_SHAPE(out.dims[2]));
  return mix_gather(mix_gather(padded, r, 1), c, 2);
}
typedef struct window {
  int size, stride, before;
  mix_shape out; /* with the channels of x */
  mix_tensor *padded;
} window;
static window window_over(mix_tensor *x, int size, int stride, double filler) {
  window w = {.size = size, .stride = stride, .out = mix_tensor_shape(x)};
  int64_t in = w.out.dims[1];
  w.out.dims[1] = w.out.dims[2] = (in + stride - 1) / stride;
  int64_t pad = (w.out.dims[1] - 1) * stride + size - in;
  if (pad < 0) pad = 0;
  w.before = (int)(pad / 2);
  w.padded = mix_pad(x, MIX_SHAPE(0, w.before, w.before, 0), MIX_SHAPE(0, pad - w.before, pad - w.before, 0),
                     filler);
  return w;
}
/* All products of a window in one matmul: rounded once, as a convolution is. */
static mix_tensor *convolution(mix_tensor *x, mix_tensor *filter) {
  mix_shape f = mix_tensor_shape(filter);
  window w = window_over(x, (int)f.dims[0], 1, 0);
  mix_tensor *parts[64];
  int count = 0;
  for (int r = 0; r < w.size; r++)
    for (int c = 0; c < w.size; c++) parts[count++] = moved(w.padded, w.out, r, c, 1);
  mix_tensor *rows = mix_concat(count, parts, 3);
  int64_t n = w.out.dims[0] * w.out.dims[1] * w.out.dims[2], k = f.dims[0] * f.dims[1] * f.dims[2];
  mix_tensor *y = mix_matmul(mix_reshape(rows, MIX_SHAPE(n, k)), mix_reshape(filter, MIX_SHAPE(k, f.dims[3])),
                             false, false);
  return mix_reshape(y, MIX_SHAPE(w.out.dims[0], w.out.dims[1], w.out.dims[2], f.dims[3]));
}
/* One input channel only: then it is a convolution. */
static mix_tensor *depthwise(mix_tensor *x, mix_tensor *filter) {
  assert_int_equal(mix_tensor_shape(x).dims[3], 1);
  return convolution(x, filter);
}
static mix_tensor *max_pool(mix_tensor *x, mix_tensor *unused) {
  (void)unused;
  window w = window_over(x, 2, 2, -INFINITY);
  mix_tensor *y = moved(w.padded, w.out, 0, 0, 2);
  for (int i = 1; i < 4; i++) y = mix_maximum(y, moved(w.padded, w.out, i / 2, i % 2, 2));
  return y;
}
/* The gradient of f at x (of == 0) or at its second argument. */
static mix_tensor *gradient_of(mix_tensor *(*f)(mix_tensor *, mix_tensor *), mix_tensor *a, mix_tensor *b,
                               int of, mix_tensor *dy) {
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, of ? b : a);
  mix_tensor *loss = mix_reduce_sum(mix_multiply(mix_cast(f(a, b), MIX_FLOAT32), mix_cast(dy, MIX_FLOAT32)),
                                    MIX_ALL_AXES, false);
  mix_tape_end(tape);
  return mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(of ? b : a)), 0);
}

/* ---- loops ---- */

/* The number of iterations whose body runs: those in which the LoopCond of this Switch is true. */
static int iterations_of(graph_run *run, const json_t *switch_node) {
  for (int i = 0; i < MAX_ITERATIONS; i++)
    if (!mix_tensor_item(input_of(run, switch_node, 1, i))) return i;
  fail_msg("a loop without an end");
  return 0;
}
static const json_t *source_of(const graph_run *run, const json_t *node, size_t input) {
  const char *name = json_string_value(json_array_get(json_object_get(node, "inputs"), input));
  size_t index;
  return node_named(run, name, strcspn(name, ":"), &index);
}
static mix_tensor *merged(graph_run *run, const json_t *node, int iteration) {
  return iteration ? input_of(run, node, 1, iteration - 1) : input_of(run, node, 0, 0);
}
static mix_tensor *left(graph_run *run, const json_t *exit) {
  return input_of(run, exit, 0, iterations_of(run, source_of(run, exit, 0)));
}
/* The stack behind a push or a pop, whose handle came in by an Enter. */
static const char *stack_of(const graph_run *run, const json_t *node) {
  return text_in(source_of(run, source_of(run, node, 0), 0), "name");
}
/* Pop i of the backward loop is push n - 1 - i of the forward loop, where n is the number of its iterations:
 * that of the loop in which the pushed value is a body's. */
static mix_tensor *popped(graph_run *run, const json_t *pop, int iteration, int forward) {
  for (size_t i = 0; i < json_array_size(run->nodes); i++) {
    const json_t *push = json_array_get(run->nodes, i);
    if (!strcmp(text_in(push, "op"), "StackPushV2") && !strcmp(stack_of(run, push), stack_of(run, pop)))
      return input_of(run, push, 1, forward - 1 - iteration);
  }
  fail_msg("nothing is pushed for %s", text_in(pop, "name"));
  return NULL;
}

/* ---- ops ---- */

typedef mix_tensor *(*unary)(mix_tensor *);
typedef mix_tensor *(*binary)(mix_tensor *, mix_tensor *);
static mix_tensor *real_divide(mix_tensor *a, mix_tensor *b) { return mix_divide(a, b); }
static mix_tensor *twice(mix_tensor *x) { return mix_add(x, x); }
static mix_tensor *relu_gradient(mix_tensor *dy, mix_tensor *y) {
  return mix_select(mix_greater(y, mix_zeros_like(y)), dy, mix_zeros_like(dy));
}
static mix_tensor *filled(mix_tensor *dims, mix_tensor *value) {
  return mix_broadcast_to(value, shape_from(dims));
}
static mix_tensor *reshaped(mix_tensor *x, mix_tensor *dims) { return mix_reshape(x, shape_from(dims)); }
static mix_tensor *tiled(mix_tensor *x, mix_tensor *multiples) { /* of ones */
  return mix_broadcast_to(x, shape_from(multiples));
}
static const struct {
  const char *op;
  unary one;
  binary two;
} simple_ops[] = {{"Identity", mix_identity, NULL},
                  {"Enter", mix_identity, NULL},
                  {"LoopCond", mix_identity, NULL},
                  {"NextIteration", mix_identity, NULL},
                  {"Elu", mix_elu, NULL},
                  {"Erf", mix_erf, NULL},
                  {"Erfc", mix_erfc, NULL},
                  {"Inv", mix_reciprocal, NULL},
                  {"Log", mix_log, NULL},
                  {"Log1p", mix_log1p, NULL},
                  {"LogSoftmax", mix_log_softmax, NULL},
                  {"Reciprocal", mix_reciprocal, NULL},
                  {"Sigmoid", mix_sigmoid, NULL},
                  {"Softmax", mix_softmax, NULL},
                  {"Softplus", mix_softplus, NULL},
                  {"Sqrt", mix_sqrt, NULL},
                  {"Tanh", mix_tanh, NULL},
                  {"Relu", mix_relu, NULL},
                  {"PartitionedCall", twice, NULL},
                  {"AddV2", NULL, mix_add},
                  {"Mul", NULL, mix_multiply},
                  {"Sub", NULL, mix_subtract},
                  {"RealDiv", NULL, real_divide},
                  {"Pow", NULL, mix_power},
                  {"Less", NULL, mix_less},
                  {"GreaterEqual", NULL, mix_greater_equal},
                  {"LogicalAnd", NULL, mix_logical_and},
                  {"FloorMod", NULL, mix_floor_mod},
                  {"BiasAdd", NULL, mix_bias_add},
                  {"ReluGrad", NULL, relu_gradient},
                  {"Fill", NULL, filled},
                  {"Reshape", NULL, reshaped},
                  {"Tile", NULL, tiled},
                  {"ZerosLike", mix_zeros_like, NULL},
                  {"Neg", mix_negative, NULL},
                  {"SquaredDifference", NULL, mix_squared_difference},
                  {"Conv2D", NULL, convolution},
                  {"DepthwiseConv2dNative", NULL, depthwise}};

/* A variable is a constant here: none of these graphs assigns. */
static mix_tensor *source_value(const graph_run *run, const json_t *node) {
  if (json_object_get(node, "value")) return constant(run, node);
  bool weight = !strcmp(text_in(node, "op"), "VariableV2");
  return drawn(run, text_in(node, "name"), shape_in(json_object_get(json_object_get(node, "attrs"), "shape")),
               port_dtype(run, node, "outputs", 0), weight);
}

static void batch_norm(mix_tensor *const *in, double epsilon, mix_tensor **out) {
  mix_axes rows = MIX_AXES(0, 1, 2);
  mix_tensor *x = mix_cast(in[0], MIX_FLOAT32), *mean = mix_reduce_mean(x, rows, false),
             *variance = mix_reduce_mean(mix_squared_difference(x, mean), rows, false),
             *factor = mix_rsqrt(mix_add(variance, mix_scalar(epsilon, MIX_FLOAT32)));
  mix_tensor *scale = mix_cast(in[1], MIX_FLOAT32), *offset = mix_cast(in[2], MIX_FLOAT32);
  out[0] = mix_add(mix_multiply(mix_multiply(mix_subtract(x, mean), factor), scale), offset);
  out[1] = out[3] = mean;
  out[2] = out[4] = out[5] = variance;
}
/* in: dy, x, scale, mean, variance. The last two outputs are of no use, as TensorFlow's. */
static void batch_norm_gradient(mix_tensor *const *in, double epsilon, mix_tensor **out) {
  mix_axes rows = MIX_AXES(0, 1, 2);
  mix_tensor *dy = mix_cast(in[0], MIX_FLOAT32), *scale = mix_cast(in[2], MIX_FLOAT32),
             *mean = mix_cast(in[3], MIX_FLOAT32), *variance = mix_cast(in[4], MIX_FLOAT32),
             *factor = mix_rsqrt(mix_add(variance, mix_scalar(epsilon, MIX_FLOAT32))),
             *x = mix_multiply(mix_subtract(mix_cast(in[1], MIX_FLOAT32), mean), factor),
             *along_x = mix_reduce_mean(mix_multiply(dy, x), rows, false);
  mix_tensor *centered = mix_subtract(dy, mix_reduce_mean(dy, rows, false));
  out[0] = mix_multiply(mix_multiply(scale, factor), mix_subtract(centered, mix_multiply(x, along_x)));
  out[1] = mix_reduce_sum(mix_multiply(dy, x), rows, false);
  out[2] = mix_reduce_sum(dy, rows, false);
  out[3] = out[4] = mix_zeros_like(mean);
}
static void split(mix_tensor *x, int axis, int parts, mix_tensor **out) {
  mix_shape begin = {.rank = mix_tensor_shape(x).rank}, size = mix_tensor_shape(x);
  size.dims[axis] /= parts;
  for (int i = 0; i < parts; i++, begin.dims[axis] += size.dims[axis]) out[i] = mix_slice(x, begin, size);
}
static void concat_offset(mix_tensor *const *in, int parts, mix_tensor **out) {
  int axis = (int)mix_tensor_item(in[0]);
  double at[MIX_MAX_RANK] = {0};
  for (int i = 0; i < parts; i++) {
    mix_shape shape = shape_from(in[1 + i]);
    out[i] = mix_tensor_from_doubles(at, MIX_INT32, MIX_SHAPE(shape.rank));
    at[axis] += (double)shape.dims[axis];
  }
}
static mix_tensor *convolution_gradient(const char *op, mix_tensor *const *in) {
  if (strstr(op, "BackpropInput"))
    return gradient_of(convolution, mix_fill(shape_from(in[0]), 0, mix_tensor_dtype(in[1])), in[1], 0, in[2]);
  return gradient_of(convolution, in[0], mix_fill(shape_from(in[1]), 0, mix_tensor_dtype(in[0])), 1, in[2]);
}

static double epsilon_of(const json_t *node) {
  return json_number_value(json_object_get(json_object_get(node, "attrs"), "epsilon"));
}

/* The ops that are not in the table. */
static void run_other(const json_t *node, const char *op, mix_tensor *const *in, size_t count,
                      mix_tensor **out) {
  if (!strcmp(op, "MatMul"))
    out[0] = mix_matmul(in[0], in[1], attribute(node, "transpose_a", 0), attribute(node, "transpose_b", 0));
  else if (!strcmp(op, "Cast"))
    out[0] = in[0];
  else if (!strcmp(op, "Sum"))
    out[0] = mix_reduce_sum(in[0], axes_from(in[1]), attribute(node, "keep_dims", 0));
  else if (!strcmp(op, "Mean"))
    out[0] = mix_reduce_mean(in[0], axes_from(in[1]), attribute(node, "keep_dims", 0));
  else if (!strcmp(op, "ConcatV2"))
    out[0] = mix_concat((int)count - 1, in, (int)mix_tensor_item(in[count - 1]));
  else if (!strcmp(op, "Split"))
    split(in[1], (int)mix_tensor_item(in[0]), (int)attribute(node, "num_split", 0), out);
  else if (!strcmp(op, "ConcatOffset"))
    concat_offset(in, (int)attribute(node, "N", 0), out);
  else if (!strcmp(op, "Slice"))
    out[0] = mix_slice(in[0], shape_from(in[1]), shape_from(in[2]));
  else if (!strcmp(op, "ShapeN"))
    for (size_t i = 0; i < count; i++) {
      double dims[MIX_MAX_RANK];
      mix_shape shape = mix_tensor_shape(in[i]);
      for (int d = 0; d < shape.rank; d++) dims[d] = (double)shape.dims[d];
      out[i] = mix_tensor_from_doubles(dims, MIX_INT32, MIX_SHAPE(shape.rank));
    }
  else if (!strcmp(op, "MaxPool"))
    out[0] = max_pool(in[0], NULL);
  else if (!strcmp(op, "MaxPoolGrad"))
    out[0] = gradient_of(max_pool, in[0], in[0], 0, in[2]);
  else if (!strcmp(op, "FusedBatchNormV3"))
    batch_norm(in, epsilon_of(node), out);
  else if (!strcmp(op, "FusedBatchNormGradV3"))
    batch_norm_gradient(in, epsilon_of(node), out);
  else if (!strcmp(op, "SelectV2"))
    out[0] = mix_select(in[0], in[1], in[2]);
  else if (strstr(op, "Conv") && strstr(op, "Backprop"))
    out[0] = convolution_gradient(op, in);
  else
    fail_msg("no op %s", op);
}

static void run_op(graph_run *run, const json_t *node, int iteration, mix_tensor **out) {
  const char *op = text_in(node, "op");
  mix_tensor *in[MAX_INPUTS];
  size_t count = data_inputs(node);
  if (!count) {
    out[0] = source_value(run, node);
    return;
  }
  for (size_t i = 0; i < count; i++) in[i] = input_of(run, node, i, iteration);
  if (!strcmp(op, "RandomUniform")) {
    out[0] = drawn(run, text_in(node, "name"), shape_from(in[0]), port_dtype(run, node, "outputs", 0), false);
    return;
  }
  for (size_t i = 0; i < sizeof simple_ops / sizeof *simple_ops; i++)
    if (!strcmp(simple_ops[i].op, op)) {
      out[0] = simple_ops[i].one ? simple_ops[i].one(in[0]) : simple_ops[i].two(in[0], in[1]);
      return;
    }
  run_other(node, op, in, count, out);
}

/* The number of iterations of the forward loop: the one with a Switch whose name begins with "loop/". */
static int forward_iterations(graph_run *run) {
  size_t index;
  return iterations_of(run, node_named(run, "loop/Switch", strlen("loop/Switch"), &index));
}
static void run_node(graph_run *run, const json_t *node, int iteration, mix_tensor **out) {
  const char *op = text_in(node, "op");
  if (!strcmp(op, "Merge"))
    out[0] = merged(run, node, iteration);
  else if (!strcmp(op, "Exit"))
    out[0] = left(run, node);
  else if (!strcmp(op, "Switch"))
    out[0] = out[1] = input_of(run, node, 0, iteration);
  else if (!strcmp(op, "Enter"))
    out[0] = input_of(run, node, 0, 0);
  else if (!strcmp(op, "StackPopV2"))
    out[0] = popped(run, node, iteration, forward_iterations(run));
  else
    run_op(run, node, iteration, out);
}

/* An op that computes in another dtype than that of its port rounds here, once: the library's own ops never
 * need it. */
static void round_to_ports(const graph_run *run, const json_t *node, mix_tensor **out) {
  for (int port = 0; port < MAX_PORTS && out[port]; port++)
    out[port] = mix_cast(out[port], port_dtype(run, node, "outputs", port));
}

/* "node" and "node:port", in an iteration of the loop that the node is in. */
static mix_tensor *value_of(graph_run *run, const char *name, int iteration) {
  size_t index, length = strcspn(name, ":");
  int port = name[length] ? atoi(name + length + 1) : 0;
  const json_t *node = node_named(run, name, length, &index);
  if (!node) fail_msg("no node %s", name);
  assert_true(index < GRAPH_NODES && iteration < MAX_ITERATIONS);
  mix_tensor **values = run->value[index][iteration];
  if (!values[0]) {
    run_node(run, node, iteration, values);
    if (mix_error() != MIX_OK) fail_msg("%s: %s", name, mix_error_message());
    round_to_ports(run, node, values);
  }
  return values[port];
}

#endif
