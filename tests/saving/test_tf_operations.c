/* Functional models of tf_keras that compute with tensors: TFOpLambda and SlicingOpLambda. Their values stand
 * beside the calls; what the layers write is what they read. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "saving/model_json.h"
#include "support/expect.h"
#include "support/folder.h"

#define KERAS ", 'keras_version': '2.15.0', 'backend': 'tensorflow'}"

/* Keras's JSON from text with single quotes. */
static const char *json_of(const char *text) {
  char *copy = mix_scoped_memory(strlen(text) + 1);
  for (size_t i = 0; text[i]; i++) copy[i] = text[i] == '\'' ? '"' : text[i];
  return copy;
}

#define LAYER                                                                                                \
  "{'class_name': '%s', 'config': {'name': '%s', 'trainable': true, 'dtype': 'float32', 'function': '%s'}, " \
  "'name': '%s', 'inbound_nodes': [%s]}"
enum { SIZE = 4000 };

static const char *input_shape = "[null, 2, 3]";
/* x of shape (2, 3), or of `input_shape`, then those layers; `result` of layer `o` is the output. */
static const char *text_of_layers(const char *layers, int result) {
  char *text = mix_scoped_memory(SIZE);
  snprintf(text, SIZE,
           "{'class_name': 'Functional', 'config': {'name': 'm', 'layers': [{'class_name': 'InputLayer', "
           "'config': {'batch_input_shape': %s, 'dtype': 'float32', 'name': 'x'}, 'name': 'x', "
           "'inbound_nodes': []}, %s], 'input_layers': [['x', 0, 0]], 'output_layers': [['o', 0, %d]]}" KERAS,
           input_shape, layers, result);
  return json_of(text);
}

/* With layer `o` of that function with that node. */
static const char *text_of(const char *class_name, const char *function, const char *node, int result) {
  char *layer = mix_scoped_memory(SIZE);
  snprintf(layer, SIZE, LAYER, class_name, "o", function, "o", node);
  return text_of_layers(layer, result);
}

static mix_tensor *input(void) { return ARRAY(F32, MIX_SHAPE(1, 2, 3), 1, -2, 3, -4, 5, -6); }

static mix_tensor *predicted(mix_model *model) {
  mix_tensor *got = mix_list_get(mix_model_predict(model, input()), 0);
  assert_no_error();
  return got;
}

static json_t *node_of(mix_model *model) {
  json_t *object = json_loads(mix_model_to_json(model), 0, NULL);
  json_t *layer = json_array_get(mix_json_layers(json_object_get(object, "config")), 1);
  json_t *nodes = json_incref(json_object_get(layer, "inbound_nodes"));
  json_decref(object);
  return nodes;
}

typedef struct row {
  const char *function, *node;
  int count;
  double expected[12];
  int result;
  double scale, shift; /* x is the input times scale, unless 0, plus shift */
  bool image;          /* x is (1, 2, 1, 3) */
} row;

static mix_tensor *predicted_of(const row *r, mix_model *model) {
  mix_tensor *x = input(), *y;
  if (r->scale != 0) x = mix_multiply(x, mix_scalar_like(x, r->scale));
  x = mix_add(x, mix_scalar_like(x, r->shift));
  y = mix_list_get(mix_model_predict(model, r->image ? mix_reshape(x, MIX_SHAPE(1, 2, 1, 3)) : x), 0);
  if (!y) fail_msg("%s: %s", r->function, mix_error_message());
  return y;
}

static mix_model *model_of(const row *r) {
  const bool slices = strstr(r->function, "getitem");
  mix_model *model = mix_model_from_json(
      text_of(slices ? "SlicingOpLambda" : "TFOpLambda", r->function, r->node, r->result));
  if (!model) fail_msg("%s %s: %s", r->function, r->node, mix_error_message());
  return model;
}

static void check_values(const row *r, mix_tensor *got) {
  if (mix_shape_size(mix_tensor_shape(got)) != r->count)
    fail_msg("%s: %lld elements", r->function, (long long)mix_shape_size(mix_tensor_shape(got)));
  for (int i = 0; i < r->count; i++)
    if (!(fabs(at(got, i) - r->expected[i]) <= 1e-6 * fmax(1, fabs(r->expected[i]))))
      fail_msg("%s %s: element %d is %.9g, not %g", r->function, r->node, i, at(got, i), r->expected[i]);
}

static void check_round_trip(const row *r, mix_model *model) {
  json_t *wanted = json_loads(json_of(r->node), 0, NULL), *nodes = node_of(model);
  if (!json_equal(json_array_get(nodes, 0), wanted))
    fail_msg("%s: %s is written as %s", r->function, r->node, mix_json_text(json_array_get(nodes, 0)));
  check_values(r, predicted_of(r, mix_model_from_json(mix_model_to_json(model))));
  check_values(r, predicted_of(r, mix_model_clone(model)));
  json_decref(wanted);
  json_decref(nodes);
}

#define SAME "['x', 0, 0]"
#define ALL "{'start': null, 'stop': null, 'step': null}"
static const row rows[] = {
    /* a tensor, numbers and lists of them, on either side */
    {"__operators__.add", "['x', 0, 0, {'y': " SAME ", 'name': null}]", 6, {2, -4, 6, -8, 10, -12}},
    {"math.multiply", "['x', 0, 0, {'y': 0.5, 'name': null}]", 6, {.5, -1, 1.5, -2, 2.5, -3}},
    {"math.add", "['x', 0, 0, {'y': 2}]", 6, {3, 0, 5, -2, 7, -4}},
    {"math.add", "['x', 0, 0, {'y': [[1, 2, 3], [4, 5, 6]]}]", 6, {2, 0, 6, 0, 10, 0}},
    {"math.subtract", "['_CONSTANT_VALUE', -1, 1.0, {'y': " SAME "}]", 6, {0, 3, -2, 5, -4, 7}},
    {"math.maximum", "['_CONSTANT_VALUE', -1, [0.0, 1.0, 2.0], {'y': " SAME "}]", 6, {1, 1, 3, 0, 5, 2}},
    {"math.truediv", "['_CONSTANT_VALUE', -1, 12.0, {'y': " SAME "}]", 6, {12, -6, 4, -3, 2.4, -2}},
    {"math.pow", "['x', 0, 0, {'y': 2, 'name': null}]", 6, {1, 4, 9, 16, 25, 36}},
    {"math.minimum", "['x', 0, 0, {'y': 0.0}]", 6, {0, -2, 0, -4, 0, -6}},
    {"math.floormod", "['x', 0, 0, {'y': 4.0}]", 6, {1, 2, 3, 0, 1, 2}},
    {"compat.v1.floor_div", "['x', 0, 0, {'y': 4.0}]", 6, {0, -1, 0, -1, 1, -2}},
    {"math.greater", "['x', 0, 0, {'y': 0, 'name': null}]", 6, {1, 0, 1, 0, 1, 0}},
    {"math.negative", "['x', 0, 0, {'name': null}]", 6, {-1, 2, -3, 4, -5, 6}},
    {"math.abs", "['x', 0, 0, {}]", 6, {1, 2, 3, 4, 5, 6}},
    {"nn.relu6", "['x', 0, 0, {}]", 6, {1, 0, 3, 0, 5, 0}},
    {"nn.leaky_relu", "['x', 0, 0, {'alpha': 0.1}]", 6, {1, -.2, 3, -.4, 5, -.6}},
    {"nn.leaky_relu", "['x', 0, 0, {}]", 6, {1, -.4, 3, -.8, 5, -1.2}},
    {"clip_by_value",
     "['x', 0, 0, {'clip_value_min': -1.0, 'clip_value_max': 2.0}]",
     6,
     {1, -1, 2, -1, 2, -1}},
    /* axes */
    {"math.reduce_mean", "['x', 0, 0, {'axis': 1}]", 3, {-1.5, 1.5, -1.5}},
    {"math.reduce_sum", "['x', 0, 0, {'axis': [1, 2], 'keepdims': true}]", 1, {-3}},
    {"math.reduce_max", "['x', 0, 0, {'axis': -1}]", 2, {3, 5}},
    {"math.reduce_sum", "['x', 0, 0, {'axis': []}]", 6, {1, -2, 3, -4, 5, -6}},
    {"math.reduce_variance", "['x', 0, 0, {'axis': 1}]", 3, {6.25, 12.25, 20.25}},
    {"nn.moments", "['x', 0, 0, {'axes': [2]}]", 2, {38.0 / 9, 206.0 / 9}, .result = 1},
    {"compat.v1.norm",
     "['x', 0, 0, {'ord': 'euclidean', 'axis': [1, 2], 'keepdims': null}]",
     1,
     {9.53939201416}},
    {"math.divide_no_nan", "['x', 0, 0, {'y': [1.0, 0.0, 2.0]}]", 6, {1, 0, 1.5, -4, 0, -3}},
    {"math.argmax", "['x', 0, 0, {'axis': -1, 'output_type': 'int32'}]", 2, {2, 1}},
    {"math.cumsum", "['x', 0, 0, {'axis': 2}]", 6, {1, -1, 2, -4, 1, -5}},
    {"math.cumprod", "['x', 0, 0, {'axis': 1}]", 6, {1, -2, 3, -4, -10, -18}},
    {"sort", "['x', 0, 0, {'direction': 'DESCENDING'}]", 6, {3, 1, -2, 5, -4, -6}},
    {"argsort", "['x', 0, 0, {'axis': -1}]", 6, {1, 0, 2, 2, 0, 1}},
    {"math.top_k", "['x', 0, 0, {'k': 2}]", 4, {3, 1, 5, -4}},
    {"roll", "['x', 0, 0, {'shift': 1, 'axis': 2}]", 6, {3, 1, -2, -6, -4, 5}},
    {"math.sinh",
     "['x', 0, 0, {}]",
     6,
     {1.1752012, -3.6268604, 10.017875, -27.289917, 74.203211, -201.71316}},
    /* shapes */
    {"reshape", "['x', 0, 0, {'shape': [-1, 3, 2]}]", 6, {1, -2, 3, -4, 5, -6}},
    {"compat.v1.transpose", "['x', 0, 0, {'perm': [0, 2, 1], 'name': 't'}]", 6, {1, -4, -2, 5, 3, -6}},
    {"expand_dims", "['x', 0, 0, {'axis': -1}]", 6, {1, -2, 3, -4, 5, -6}},
    {"tile", "['x', 0, 0, {'multiples': [1, 2, 1]}]", 12, {1, -2, 3, -4, 5, -6, 1, -2, 3, -4, 5, -6}},
    {"repeat", "['x', 0, 0, {'repeats': 2, 'axis': 1}]", 12, {1, -2, 3, 1, -2, 3, -4, 5, -6, -4, 5, -6}},
    {"compat.v1.gather", "['x', 0, 0, {'indices': [2, 0], 'axis': 2}]", 4, {3, 1, -6, -4}},
    {"reverse", "['x', 0, 0, {'axis': [1]}]", 6, {-4, 5, -6, 1, -2, 3}},
    {"compat.v1.pad",
     "['x', 0, 0, {'paddings': [[0, 0], [0, 1], [0, 0]], 'constant_values': 7}]",
     9,
     {1, -2, 3, -4, 5, -6, 7, 7, 7}},
    {"pad",
     "['x', 0, 0, {'paddings': [[0, 0], [0, 0], [1, 0]], 'mode': 'REFLECT'}]",
     8,
     {-2, 1, -2, 3, 5, -4, 5, -6}},
    {"split", "['x', 0, 0, {'num_or_size_splits': [1, -1], 'axis': 2}]", 4, {-2, 3, 5, -6}, .result = 1},
    {"unstack", "['x', 0, 0, {'axis': 1}]", 3, {-4, 5, -6}, .result = 1},
    {"cast", "['x', 0, 0, {'dtype': 'int32'}]", 6, {1, -2, 3, -4, 5, -6}},
    /* lists of tensors and constants */
    {"concat",
     "[['x', 0, 0, {'axis': 1}], ['x', 0, 0, {'axis': 1}]]",
     12,
     {1, -2, 3, -4, 5, -6, 1, -2, 3, -4, 5, -6}},
    {"concat",
     "[['x', 0, 0, {'axis': -1}], ['_CONSTANT_VALUE', -1, [[[7.0], [8.0]]], {'axis': -1}]]",
     8,
     {1, -2, 3, 7, -4, 5, -6, 8}},
    {"stack",
     "[['x', 0, 0, {'axis': 3}], ['x', 0, 0, {'axis': 3}]]",
     12,
     {1, 1, -2, -2, 3, 3, -4, -4, 5, 5, -6, -6}},
    {"math.add_n", "[['x', 0, 0, {}], ['x', 0, 0, {}], ['x', 0, 0, {}]]", 6, {3, -6, 9, -12, 15, -18}},
    {"linalg.matmul", "['x', 0, 0, {'b': " SAME ", 'transpose_b': true}]", 4, {14, -32, -32, 77}},
    {"linalg.matmul", "['x', 0, 0, {'b': [[1.0], [1.0], [2.0]]}]", 2, {5, -11}},
    /* numbers of NumPy's linalg */
    {"linalg.svd", "['x', 0, 0, {'compute_uv': false}]", 2, {9.508032, 0.77286964}},
    {"linalg.pinv",
     "['x', 0, 0, {}]",
     6,
     {-0.94444444, -0.44444444, 0.11111111, 0.11111111, 0.72222222, 0.22222222}},
    {"linalg.pinv", "['x', 0, 0, {'rcond': 1.0}]", 6, {0, 0, 0, 0, 0, 0}},
    {"linalg.matrix_rank", "['x', 0, 0, {}]", 1, {2}},
    {"linalg.matrix_rank", "['x', 0, 0, {'tol': 1.0}]", 1, {1}},
    /* x[...] */
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [" ALL ", -1]}]", 3, {-4, 5, -6}},
    {"__operators__.getitem",
     "['x', 0, 0, {'slice_spec': [" ALL ", 0, {'start': 1, 'stop': null, 'step': null}]}]",
     2,
     {-2, 3}},
    {"__operators__.getitem",
     "['x', 0, 0, {'slice_spec': [" ALL ", " ALL ", {'start': null, 'stop': null, 'step': 2}]}]",
     4,
     {1, 3, -4, -6}},
    {"__operators__.getitem",
     "['x', 0, 0, {'slice_spec': [" ALL ", {'start': null, 'stop': null, 'step': -1}]}]",
     6,
     {-4, 5, -6, 1, -2, 3}},
    {"__operators__.getitem",
     "['x', 0, 0, {'slice_spec': [" ALL ", null, {'start': null, 'stop': -1, 'step': null}]}]",
     3,
     {1, -2, 3}},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [{'class_name': '__ellipsis__'}, 1]}]", 2, {-2, 5}},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': " ALL "}]", 6, {1, -2, 3, -4, 5, -6}},
};

static void functions_compute(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      mix_model *model = model_of(&rows[i]);
      check_values(&rows[i], predicted(model));
      check_round_trip(&rows[i], model);
    }
}

/* What tests/oracle/tf_functions.py recorded. */
static const row recorded[] = {
#include "saving/recorded/tf_functions.inc"
};
static void recorded_functions(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
    MIX_SCOPE {
      const row *r = &recorded[i];
      input_shape = r->image ? "[null, 2, 1, 3]" : "[null, 2, 3]";
      mix_model *model = model_of(r);
      input_shape = "[null, 2, 3]";
      check_values(r, predicted_of(r, model));
      check_round_trip(r, model);
    }
}

/* ---- what needs another operation before it ---- */

/* Operation `o` of operation `p` of x. */
static mix_model *model_of_two(const char *first, const char *first_node, const char *function,
                               const char *node, int result) {
  char *layers = mix_scoped_memory(SIZE);
  snprintf(layers, SIZE, LAYER ", " LAYER, "TFOpLambda", "p", first, "p", first_node, "TFOpLambda", "o",
           function, "o", node);
  return mix_model_from_json(text_of_layers(layers, result));
}

static mix_tensor *result_of(mix_model *model, mix_tensor *x) {
  assert_no_error();
  mix_list *results = mix_call_outputs_with(
      model->layer, &(mix_call_options){.size = sizeof(mix_call_options), .inputs = mix_list_of(x)});
  assert_no_error();
  return mix_list_get(results, 0);
}

/* Unlike the activation of tf_keras, tf.nn.softmax takes a vector. */
static void softmax_of_a_vector(void **state) {
  (void)state;
  static const char *const functions[] = {"nn.softmax", "nn.log_softmax"};
  MIX_SCOPE {
    mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 2, 3), 1, -2, 3, -1, 2, -3);
    for (int i = 0; i < 2; i++) {
      mix_tensor *y = result_of(model_of_two("math.reduce_sum", "['x', 0, 0, {'axis': [0, 1]}]", functions[i],
                                             "['p', 0, 0, {}]", 0),
                                x);
      assert_true(mix_shape_equal(mix_tensor_shape(y), MIX_SHAPE(3)));
      for (int k = 0; k < 3; k++) assert_true(fabs(at(y, k) - (i ? -log(3) : 1. / 3)) < 1e-6);
    }
  }
}

/* 666 squared is too much for float16; the mean of the squares is not. As TensorFlow computes them. */
static void moments_of_float16_are_computed_in_float32(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 2, 3), 100, -200, 300, -40, 50, -60);
    const double expected[2][2] = {{66.6875, -16.671875}, {42208, 2288}};
    for (int i = 0; i < 2; i++) {
      mix_tensor *y = result_of(model_of_two("cast", "['x', 0, 0, {'dtype': 'float16'}]", "nn.moments",
                                             "['p', 0, 0, {'axes': [2]}]", i),
                                x);
      assert_int_equal(mix_tensor_dtype(y), MIX_FLOAT16);
      for (int k = 0; k < 2; k++) assert_true(at(y, k) == expected[i][k]);
    }
  }
}

/* 2^53 + 1 is no double. */
static void large_integers_are_exact(void **state) {
  (void)state;
  static const char *const nodes[] = {"['p', 0, 0, {'y': 9007199254740993}]",
                                      "['_CONSTANT_VALUE', -1, 9007199254740993, {'y': ['p', 0, 0]}]"};
  for (int i = 0; i < 2; i++)
    MIX_SCOPE {
      mix_model *model = model_of_two("cast", "['x', 0, 0, {'dtype': 'int64'}]", "math.add", nodes[i], 0);
      mix_tensor *y = result_of(model, mix_fill(MIX_SHAPE(1, 2, 3), 0, F32));
      int64_t got[6] = {0};
      assert_int_equal(mix_tensor_dtype(y), MIX_INT64);
      assert_int_equal(mix_tensor_read(y, MIX_INT64, got, 6), MIX_OK);
      assert_true(got[0] == (INT64_C(1) << 53) + 1);
    }
}

/* ---- errors ---- */

static const struct {
  const char *function, *node, *part;
  mix_status status;
} refused[] = {
    {"linalg.expm", "['x', 0, 0, {}]", "TFOpLambda: tf.linalg.expm is not supported", MIX_UNSUPPORTED},
    {"linalg.eigh", "['x', 0, 0, {}]", "expected square matrices", MIX_VALUE_ERROR},
    {"einsum", "['_CONSTANT_VALUE', -1, 'ij->ji', {}]", "tf.einsum is not supported", MIX_UNSUPPORTED},
    {"math.add", "['x', 0, 0, {}]", "tf.math.add in layer 'o': y is missing", MIX_TYPE_ERROR},
    {"math.add", "[['x', 0, 0, {'y': 1}], ['x', 0, 0, {}]]", "x is an array; expected a tensor",
     MIX_TYPE_ERROR},
    {"math.abs", "['x', 0, 0, {'y': 1}]", "its argument 'y' is not supported", MIX_TYPE_ERROR},
    {"math.abs", "['x', 0, 0, {'x': 1}]", "its argument 'x' is given twice", MIX_TYPE_ERROR},
    {"math.add", "['x', 0, 0, {'y': 'two'}]", "y is a string; expected a tensor or numbers", MIX_TYPE_ERROR},
    {"math.add", "['x', 0, 0, {'y': [1, [2, 3]]}]", "y is an array; expected a tensor or numbers",
     MIX_TYPE_ERROR},
    {"math.add", "['x', 0, 0, {'y': true}]", "y holds booleans; the other operand is float32",
     MIX_TYPE_ERROR},
    {"math.reduce_sum", "['x', 0, 0, {'axis': 'one'}]", "axis is a string; expected an integer",
     MIX_TYPE_ERROR},
    {"math.reduce_sum", "['x', 0, 0, {'axis': 99999999999}]", "axis is", MIX_TYPE_ERROR},
    {"math.reduce_sum", "['x', 0, 0, {'axis': 7}]", "axis", MIX_VALUE_ERROR},
    {"math.add", "['x', 0, 0, {'y': ['z', 0, 0]}]", "needs layer 'z', which the model lacks",
     MIX_VALUE_ERROR},
    {"math.abs", "['z', 0, 0, {}]", "needs layer 'z', which the model lacks", MIX_VALUE_ERROR},
    {"math.add", "['x', 0, 0, {'y': ['x', 1, 0]}]", "call 1 of layer 'x' is asked for", MIX_VALUE_ERROR},
    {"math.add", "['x', 0, 0, {'y': ['o', 0, 0]}]", "form a circle", MIX_VALUE_ERROR},
    {"math.add", "['_CONSTANT_VALUE', -1, 1.0, {'y': 2.0}]", "has no tensor", MIX_VALUE_ERROR},
    {"math.abs", "['x', 0, 0, 3]", "keywords that are no object", MIX_VALUE_ERROR},
    {"math.abs", "'x'", "something else than [layer, call, result, keywords]", MIX_VALUE_ERROR},
    {"math.abs", "[]", "has no tensor", MIX_VALUE_ERROR},
    {"math.add", "['x', 0, 0, {'y': {'$tensor': 9}}]", "an object that no function takes", MIX_VALUE_ERROR},
    {"math.add", "['_CONSTANT_VALUE', -1, {'$tensor': 0}, {'y': " SAME "}]",
     "an object that no function takes", MIX_VALUE_ERROR},
    {"math.add", "['x', 0, 0, {'y': {'$value': 1.0}}]", "an object that no function takes", MIX_VALUE_ERROR},
    {"cast", "['x', 0, 0, {'dtype': 'float99'}]", "expected the name of a dtype", MIX_TYPE_ERROR},
    {"pad", "['x', 0, 0, {'paddings': [[0, 0], [0, 1], [0, 0]], 'constant_values': 9007199254740993}]",
     "expected a number that float64 holds", MIX_TYPE_ERROR},
    {"where", "['x', 0, 0, {}]", "supported is a tensor", MIX_UNSUPPORTED},
    {"norm", "['x', 0, 0, {'ord': 1}]", "ord is 1; supported is \"euclidean\"", MIX_UNSUPPORTED},
    {"nn.moments", "['x', 0, 0, {'axes': [1], 'shift': 0.5}]", "shift is a real number; supported is null",
     MIX_UNSUPPORTED},
    {"tile", "['x', 0, 0, {'multiples': [1, 1000000, 1]}]", "at most 1024 parts", MIX_UNSUPPORTED},
    {"split", "['x', 0, 0, {'num_or_size_splits': [1, 1], 'axis': 2}]", "do not fill an axis of 3",
     MIX_VALUE_ERROR},
    {"split", "['x', 0, 0, {'num_or_size_splits': [1, -1]}]", "one whose size is known", MIX_UNSUPPORTED},
    {"reshape", "['x', 0, 0, {'shape': [1, 1, 1, 1, 1, 1, 1, 1, 6]}]", "at most 8 integers", MIX_TYPE_ERROR},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [" ALL ", 2]}]", "2 is outside axis 1 of size 2",
     MIX_VALUE_ERROR},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': 0}]", "axis 0 has an unknown size",
     MIX_UNSUPPORTED},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': ['one']}]", "slice_spec is", MIX_TYPE_ERROR},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [" ALL ", {'start': 0, 'stop': 1, 'step': 0}]}]",
     "slice_spec is", MIX_TYPE_ERROR},
    {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [" ALL "," ALL "," ALL ", 0]}]", "slice_spec is",
     MIX_TYPE_ERROR},
};

static void what_cannot_be_is_an_error(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    MIX_SCOPE {
      if (mix_model_from_json(text_of("TFOpLambda", refused[i].function, refused[i].node, 0)))
        fail_msg("%s %s loads", refused[i].function, refused[i].node);
      assert_error(refused[i].status, refused[i].part);
    }
}

/* Lists in lists in lists, as no file of Keras has them. */
static void deep_lists_are_an_error(void **state) {
  (void)state;
  char node[400] = "['x', 0, 0, {'y': ";
  for (int i = 0; i < 100; i++) strcat(node, "[");
  for (int i = 0; i < 100; i++) strcat(node, "]");
  strcat(node, "}]");
  MIX_SCOPE {
    assert_null(mix_model_from_json(text_of("TFOpLambda", "math.add", node, 0)));
    assert_error(MIX_VALUE_ERROR, "more than 64 deep");
  }
}

/* ---- models ---- */

/* Dense, then that layer, then a Dense; `layer` begins with its class. */
static mix_model *trained_model(const char *policy, const char *layer) {
  char *text = mix_scoped_memory(SIZE);
  snprintf(text, SIZE,
           "{'class_name': 'Functional', 'config': {'name': 'm', 'layers': [{'class_name': 'InputLayer', "
           "'config': {'batch_input_shape': [null, 2, 3], 'dtype': 'float32', 'name': 'x'}, 'name': 'x', "
           "'inbound_nodes': []}, {'class_name': 'Dense', 'config': {'name': 'd', 'units': 3, 'dtype': %s, "
           "'kernel_initializer': 'ones'}, 'name': 'd', 'inbound_nodes': [[['x', 0, 0, {}]]]}, %s, "
           "{'class_name': 'Dense', 'config': {'name': 'e', 'units': 2, 'dtype': 'float32', "
           "'kernel_initializer': 'ones'}, 'name': 'e', 'inbound_nodes': [[['o', 0, 0, {}]]]}], "
           "'input_layers': [['x', 0, 0]], 'output_layers': [['e', 0, 0]]}" KERAS,
           policy, layer);
  mix_model *model = mix_model_from_json(json_of(text));
  if (model) mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.01));
  return model;
}
#define MIXED "{'class_name': 'Policy', 'config': {'name': 'mixed_float16'}}"
#define OPERATION(function, node)                                                                            \
  "{'class_name': 'TFOpLambda', 'config': {'name': 'o', 'dtype': 'float32', 'function': '" function          \
  "'}, 'name': 'o', 'inbound_nodes': [" node "]}"

/* The gradient passes through the operation as through the layer of the same function. */
static void operations_train(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *models[] = {
        trained_model("'float32'", OPERATION("math.multiply", "['d', 0, 0, {'y': 0.5}]")),
        trained_model("'float32'",
                      "{'class_name': 'Rescaling', 'config': {'name': 'o', 'scale': 0.5, "
                      "'dtype': 'float32'}, 'name': 'o', 'inbound_nodes': [[['d', 0, 0, {}]]]}")};
    double losses[2][2];
    for (int i = 0; i < 4; i++) {
      mix_logs *logs = mix_model_train_on_batch(models[i / 2], input(), mix_fill(MIX_SHAPE(1, 2, 2), 1, F32));
      assert_no_error();
      losses[i / 2][i % 2] = mix_logs_get(logs, "loss");
    }
    assert_true(losses[0][0] == losses[1][0] && losses[0][1] == losses[1][1]);
    assert_true(losses[0][1] < losses[0][0]);
    for (int i = 0; i < 9; i++) assert_true(weight_at(models[0], 0, i) == weight_at(models[1], 0, i));
    assert_true(weight_at(models[0], 0, 0) != 1);
  }
}

/* A number takes the dtype of the tensor; tensors of two dtypes are TensorFlow's error. */
static void operations_do_not_cast(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = trained_model(MIXED, OPERATION("math.add", "['d', 0, 0, {'y': 0.1}]"));
    assert_no_error();
    mix_layer *layer = mix_list_get(mix_model_layers(model), 2);
    assert_string_equal(mix_layer_name(layer), "o");
    const mix_functional *graph = mix_layer_data(mix_model_layer(model));
    assert_int_equal(mix_tensor_dtype(mix_list_get(graph->calls[3]->inputs, 0)), MIX_FLOAT16);
    assert_null(trained_model(MIXED, OPERATION("math.add", "['d', 0, 0, {'y': ['x', 0, 0]}]")));
    assert_error(MIX_TYPE_ERROR, "float16");
    model = trained_model(MIXED, OPERATION("cast", "['d', 0, 0, {'dtype': 'float32'}]"));
    graph = mix_layer_data(mix_model_layer(model));
    assert_int_equal(mix_tensor_dtype(mix_list_get(graph->calls[3]->inputs, 0)), F32);
  }
}

/* Under another policy the layers are as if tf_keras had made them under it. */
static void operations_take_another_policy(void **state) {
  (void)state;
  const row r = {"math.multiply", "['x', 0, 0, {'y': 0.5}]", 6, {.5, -1, 1.5, -2, 2.5, -3}};
  MIX_SCOPE {
    json_t *object = json_loads(text_of("TFOpLambda", r.function, r.node, 0), 0, NULL);
    assert_true(mix_override_policy(object, "mixed_float16", mix_semantics_named("tf_keras")));
    char *text = json_dumps(object, 0);
    mix_model *model = mix_model_from_json(text);
    assert_no_error();
    assert_string_equal(mix_policy_name(mix_layer_policy(mix_list_get(mix_model_layers(model), 1))),
                        "mixed_float16");
    check_values(&r, predicted(model));
    free(text);
    json_decref(object);
  }
}

/* Through both forms of files; Keras 3 has no such layers. */
static void operations_are_saved(void **state) {
  (void)state;
  static const char *const ends[] = {"operations.keras", "operations.h5"};
  const row r = {"concat",
                 "[['x', 0, 0, {'axis': -1}], ['_CONSTANT_VALUE', -1, [[[7.0], [8.0]]], {'axis': -1}]]",
                 8,
                 {1, -2, 3, 7, -4, 5, -6, 8}};
  for (int i = 0; i < 2; i++)
    MIX_SCOPE {
      mix_model *model = model_of(&r);
      const char *path = in_folder(ends[i]);
      mix_model_save(model, path);
      mix_model *loaded = mix_model_load(path);
      assert_no_error();
      check_values(&r, predicted(loaded));
      check_round_trip(&r, loaded);
    }
  MIX_SCOPE {
    json_t *object = json_loads(mix_model_to_json(model_of(&r)), 0, NULL);
    const json_t *layer = json_array_get(mix_json_layers(json_object_get(object, "config")), 1);
    const json_t *shapes = json_object_get(json_object_get(layer, "build_config"), "input_shape");
    assert_string_equal(json_string_value(json_object_get(layer, "class_name")), "TFOpLambda");
    char *text = mix_json_text(shapes);
    assert_string_equal(text, "[[null, 2, 3], [1, 2, 1]]");
    mix_free(text);
    json_decref(object);
    mix_model *model = mix_model_from_json(text_of("TFOpLambda", r.function, r.node, 0),
                                           .semantics = mix_semantics_named("keras3"));
    check_values(&r, predicted(model));
    assert_null(mix_model_to_json(model));
    assert_error(MIX_UNSUPPORTED, "which Keras 3 lacks");
  }
}

/* Constants are told from the calls of a layer that has their name. */
static void a_layer_may_be_named_as_constants(void **state) {
  (void)state;
  const row r = {"math.subtract",
                 "['_CONSTANT_VALUE', -1, 1.0, {'y': ['_CONSTANT_VALUE', 0, 0]}]",
                 6,
                 {0, 3, -2, 5, -4, 7}};
  MIX_SCOPE {
    const char *text = text_of("TFOpLambda", r.function, r.node, 0);
    char *named = mix_scoped_memory(strlen(text) + 100);
    for (const char *from = text; *from;) {
      const bool name = !strncmp(from, "\"x\"", 3);
      strcat(named, name ? "\"_CONSTANT_VALUE\"" : (char[]){*from, 0});
      from += name ? 3 : 1;
    }
    check_values(&r, predicted(mix_model_from_json(named)));
    check_values(&r, predicted(mix_model_from_json(mix_model_to_json(mix_model_from_json(named)))));
  }
  MIX_SCOPE {
    assert_null(mix_model_from_json(text_of("TFOpLambda", "math.abs", "['_CONSTANT_VALUE', 0, 0, {}]", 0)));
    assert_error(MIX_VALUE_ERROR, "needs layer '_CONSTANT_VALUE'");
  }
}

/* A layer alone does not know its arguments. */
static void operations_are_called_in_their_model(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_layer *layer = mix_layer_from_config("TFOpLambda", "{\"function\": \"math.abs\"}", NULL);
    assert_no_error();
    assert_null(mix_call(layer, input()));
    assert_error(MIX_UNSUPPORTED, "inside the model of its file alone");
    assert_null(mix_layer_from_config("TFOpLambda", "{}", NULL));
    assert_error(MIX_TYPE_ERROR, "function");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_compute),
      cmocka_unit_test(recorded_functions),
      cmocka_unit_test(softmax_of_a_vector),
      cmocka_unit_test(moments_of_float16_are_computed_in_float32),
      cmocka_unit_test(large_integers_are_exact),
      cmocka_unit_test(what_cannot_be_is_an_error),
      cmocka_unit_test(deep_lists_are_an_error),
      cmocka_unit_test(operations_train),
      cmocka_unit_test(operations_do_not_cast),
      cmocka_unit_test(operations_take_another_policy),
      cmocka_unit_test(operations_are_saved),
      cmocka_unit_test(a_layer_may_be_named_as_constants),
      cmocka_unit_test(operations_are_called_in_their_model),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
