/* Operations of Keras 3 in functional models: values, what is written again, names that layers have too, and
 * texts that no Keras wrote. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "nn/layers/operations/operation.h"
#include "saving/model_json.h"
#include "support/expect.h"
#include "saving/keras3_text.h"

/* ---- models of one operation ---- */

#define A TENSOR("a", "[null, 2, 3]", "float32")
#define B TENSOR("b", "[null, 2, 3]", "float32")
#define I TENSOR("i", "[null, 2]", "int32")
#define H TENSOR("h", "[null, 2, 3]", "float16")
#define SLICE(start, stop, step)                                                                             \
  "{\"class_name\": \"__slice__\", \"config\": {\"start\": " start ", \"stop\": " stop ", \"step\": " step   \
  "}}"
#define ALL SLICE("null", "null", "null")
#define ELLIPSIS "{\"class_name\": \"__ellipsis__\", \"config\": {}}"
typedef struct row {
  const char *module, *class_name, *config, *args, *kwargs;
  mix_dtype dtype;
  mix_shape shape;
  double values[18];
} row;

/* The caller frees it. */
static char *text_of(const row *r) {
  mix_text text = {.grows = true};
  mix_text_put(&text,
               "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
               "{\"name\": \"m\", \"trainable\": true, \"layers\": [" INPUT("a", "[null, 2, 3]", "float32")
                   AND_INPUT("b", "[null, 2, 3]", "float32") AND_INPUT("i", "[null, 2]", "int32")
                       AND_INPUT("h", "[null, 2, 3]", "float16"));
  mix_text_put(&text,
               ", {\"module\": \"%s\", \"class_name\": \"%s\", \"config\": {\"name\": \"op\"%s%s}, "
               "\"registered_name\": \"%s\", \"name\": \"op\", \"inbound_nodes\": [{\"args\": [%s], "
               "\"kwargs\": {%s}}]}",
               r->module, r->class_name, r->config ? ", " : "", r->config ? r->config : "", r->class_name,
               r->args, r->kwargs ? r->kwargs : "");
  mix_text_put(&text, "], \"input_layers\": [[\"a\", 0, 0], [\"b\", 0, 0], [\"i\", 0, 0], [\"h\", 0, 0]], "
                      "\"output_layers\": [\"op\", 0, 0]}, \"registered_name\": \"Functional\"}");
  assert_false(text.failed);
  return text.text;
}

static mix_tensor *result_of(mix_model *model) {
  if (!model) fail_msg("%s", mix_error_message());
  mix_tensor *a = ARRAY(F32, MIX_SHAPE(1, 2, 3), 1, -2, 3, 4, 0.5, -6),
             *b = ARRAY(F32, MIX_SHAPE(1, 2, 3), 2, 4, -1, 0.5, 2, 3),
             *i = ARRAY(MIX_INT32, MIX_SHAPE(1, 2), 2, 1);
  mix_list *inputs = mix_list_of(a, b, i, mix_cast(b, MIX_FLOAT16));
  mix_list *results = mix_call_outputs_with(
      model->layer, &(mix_call_options){.size = sizeof(mix_call_options), .inputs = inputs});
  if (!results) fail_msg("%s", mix_error_message());
  return mix_list_get(results, 0);
}

static void expect_row(const row *r, mix_tensor *y, const char *when) {
  char got[160], wanted[160];
  if (mix_tensor_dtype(y) != r->dtype || !mix_shape_equal(mix_tensor_shape(y), r->shape))
    fail_msg("%s %s: %s %s; expected %s %s", r->class_name, when, mix_dtype_name(mix_tensor_dtype(y)),
             mix_shape_text(mix_tensor_shape(y), got, sizeof got), mix_dtype_name(r->dtype),
             mix_shape_text(r->shape, wanted, sizeof wanted));
  for (int64_t k = 0; k < mix_shape_size(r->shape); k++)
    if (!(fabs(at(y, k) - r->values[k]) <= (r->dtype == MIX_FLOAT16 ? 2e-3 : 1e-5)))
      fail_msg("%s %s: element %d is %g; expected %g", r->class_name, when, (int)k, at(y, k), r->values[k]);
}

/* The entry of the operation in a model's text. */
static json_t *entry_of(const char *text) {
  json_t *json = mix_json_parse(text, "test"), *layers = mix_json_layers(json_object_get(json, "config"));
  json_t *entry = json_incref(json_array_get(layers, 4));
  json_decref(json);
  return entry;
}

/* Reads, computes, writes the same, and computes the same from what it wrote, also in the legacy form. */
static void check(const row *r) {
  char *text = text_of(r);
  mix_model *model = mix_model_from_json(text);
  expect_row(r, result_of(model), "as read");
  const char *written = mix_model_to_json(model);
  if (!written) fail_msg("%s", mix_error_message());
  json_t *before = entry_of(text), *after = entry_of(written);
  if (!json_equal(before, after)) fail_msg("%s is written as %s", r->class_name, mix_json_text(after));
  expect_row(r, result_of(mix_model_from_json(written)), "as written");
  json_t *object = mix_json_parse(written, "test"), *legacy = mix_legacy_model_json(object);
  char *legacy_text = mix_json_text(legacy);
  assert_null(strstr(legacy_text, "keras.src.ops"));
  expect_row(r, result_of(mix_model_from_json(legacy_text)), "of a legacy file");
  expect_row(r, result_of(mix_model_clone(model)), "as a clone");
  json_decref(before);
  json_decref(after);
  json_decref(object);
  json_decref(legacy);
  mix_free(legacy_text);
  mix_free(text);
}

#define NUMPY "keras.src.ops.numpy"
#define FULL                                                                                                 \
  {                                                                                                          \
    .rank = 3, .dims = { 1, 2, 3 }                                                                           \
  }
#define PAIR                                                                                                 \
  {                                                                                                          \
    .rank = 2, .dims = { 1, 2 }                                                                              \
  }
#define TRIPLE                                                                                               \
  {                                                                                                          \
    .rank = 2, .dims = { 1, 3 }                                                                              \
  }

static void check_all(const row *rows, size_t count) {
  for (size_t k = 0; k < count; k++)
    MIX_SCOPE { check(&rows[k]); }
}
#define CHECK_ALL(rows) check_all(rows, sizeof rows / sizeof *rows)

static void binary(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY, "Add", NULL, A ", " B, NULL, F32, FULL, {3, 2, 2, 4.5, 2.5, -3}},
      {NUMPY, "Add", NULL, A ", 3", NULL, F32, FULL, {4, 1, 6, 7, 3.5, -3}},
      {NUMPY, "Add", NULL, A, "\"x2\": 3", F32, FULL, {4, 1, 6, 7, 3.5, -3}},
      {NUMPY, "Subtract", NULL, "3.0, " A, NULL, F32, FULL, {2, 5, 0, -1, 2.5, 9}},
      {NUMPY, "Multiply", NULL, "0.5, " H, NULL, MIX_FLOAT16, FULL, {1, 2, -0.5, 0.25, 1, 1.5}},
      {NUMPY, "Multiply", NULL, A ", " H, NULL, F32, FULL, {2, -8, -3, 2, 1, -18}},
      {NUMPY, "TrueDivide", NULL, A ", 2", NULL, F32, FULL, {0.5, -1, 1.5, 2, 0.25, -3}},
      {NUMPY, "TrueDivide", NULL, I ", 4", NULL, F32, PAIR, {0.5, 0.25}},
      {NUMPY, "Power", NULL, A ", 2", NULL, F32, FULL, {1, 4, 9, 16, 0.25, 36}},
      {NUMPY, "Maximum", NULL, A ", 0", NULL, F32, FULL, {1, 0, 3, 4, 0.5, 0}},
      {NUMPY, "Minimum", NULL, A ", " B, NULL, F32, FULL, {1, -2, -1, 0.5, 0.5, -6}},
      {NUMPY, "Mod", NULL, A ", 2", NULL, F32, FULL, {1, 0, 1, 0, 0.5, 0}},
      {NUMPY, "FloorDivide", NULL, A ", 2.0", NULL, F32, FULL, {0, -1, 1, 2, 0, -3}},
      {NUMPY, "Add", NULL, I ", 1", NULL, MIX_INT32, PAIR, {3, 2}},
      {NUMPY, "Add", NULL, I ", 1.5", NULL, F32, PAIR, {3.5, 2.5}},
      {NUMPY, "Add", NULL, I ", [1, 2.5]", NULL, F32, PAIR, {3, 3.5}},
      {NUMPY, "Add", NULL, I ", [1, 2]", NULL, MIX_INT32, PAIR, {3, 3}},
      {NUMPY, "Multiply", NULL, I ", [true, false]", NULL, MIX_INT32, PAIR, {2, 0}},
      {NUMPY, "Greater", NULL, A ", 0.5", NULL, MIX_BOOL, FULL, {1, 0, 1, 1, 0, 0}},
      {NUMPY, "LessEqual", NULL, A ", " B, NULL, MIX_BOOL, FULL, {1, 1, 0, 0, 1, 1}},
      {NUMPY, "NotEqual", NULL, I ", 2", NULL, MIX_BOOL, PAIR, {0, 1}},
      {NUMPY, "LogicalOr", NULL, A ", true", NULL, MIX_BOOL, FULL, {1, 1, 1, 1, 1, 1}},
      {NUMPY,
       "Add",
       NULL,
       A
       ", {\"class_name\": \"__numpy__\", \"config\": {\"value\": [1.0, 2.0, 3.0], \"dtype\": \"float32\"}}",
       NULL,
       F32,
       FULL,
       {2, 0, 6, 5, 2.5, -3}},
  };
  CHECK_ALL(rows);
}

static void unary(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY, "Negative", NULL, A, NULL, F32, FULL, {-1, 2, -3, -4, -0.5, 6}},
      {NUMPY, "Absolute", NULL, A, NULL, F32, FULL, {1, 2, 3, 4, 0.5, 6}},
      {NUMPY, "Square", NULL, H, NULL, MIX_FLOAT16, FULL, {4, 16, 1, 0.25, 4, 9}},
      {NUMPY, "Sqrt", NULL, I, NULL, F32, PAIR, {1.41421356, 1}},
      {NUMPY,
       "Exp",
       NULL,
       A,
       NULL,
       F32,
       FULL,
       {2.7182818, 0.13533528, 20.0855369, 54.5981500, 1.6487213, 0.00247875}},
      {NUMPY, "Round", "\"decimals\": 0", A, NULL, F32, FULL, {1, -2, 3, 4, 0, -6}},
      {"keras.src.ops.math",
       "Erf",
       NULL,
       A,
       NULL,
       F32,
       FULL,
       {0.84270079, -0.99532227, 0.99997791, 1, 0.52049988, -1}},
      {"keras.src.ops.core",
       "Cast",
       "\"dtype\": \"float16\"",
       A,
       NULL,
       MIX_FLOAT16,
       FULL,
       {1, -2, 3, 4, 0.5, -6}},
      {"keras.src.ops.core",
       "ConvertToTensor",
       "\"dtype\": null, \"sparse\": null, \"ragged\": null",
       I,
       NULL,
       MIX_INT32,
       PAIR,
       {2, 1}},
      {"keras.src.ops.core",
       "ConvertToTensor",
       "\"dtype\": \"float16\", \"sparse\": false, \"ragged\": false",
       A,
       NULL,
       MIX_FLOAT16,
       FULL,
       {1, -2, 3, 4, 0.5, -6}},
      {"keras.src.ops.core", "StopGradient", NULL, A, NULL, F32, FULL, {1, -2, 3, 4, 0.5, -6}},
      {NUMPY, "Clip", "\"x_min\": -1, \"x_max\": 2", A, NULL, F32, FULL, {1, -1, 2, 2, 0.5, -1}},
      {NUMPY,
       "Clip",
       "\"x_min\": 9007199254740994, \"x_max\": 9223372036854775807",
       A,
       NULL,
       F32,
       FULL,
       {0x1p53, 0x1p53, 0x1p53, 0x1p53, 0x1p53, 0x1p53}},
      {NUMPY,
       "Clip",
       "\"x_min\": -9223372036854775808, \"x_max\": 1",
       A,
       NULL,
       F32,
       FULL,
       {1, -2, 1, 1, 0.5, -6}},
      {NUMPY, "Where", NULL, A ", " B ", 0.0", NULL, F32, FULL, {2, 4, -1, 0.5, 2, 3}},
      {NUMPY, "Where", NULL, A ", 7, 0", NULL, MIX_INT32, FULL, {7, 7, 7, 7, 7, 7}},
      {NUMPY, "ZerosLike", "\"dtype\": \"int32\"", A, NULL, MIX_INT32, FULL, {0, 0, 0, 0, 0, 0}},
      {NUMPY, "OnesLike", "\"dtype\": null", H, NULL, MIX_FLOAT16, FULL, {1, 1, 1, 1, 1, 1}},
  };
  CHECK_ALL(rows);
}

static void reductions(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY, "Mean", "\"axis\": 1, \"keepdims\": false", A, NULL, F32, TRIPLE, {2.5, -0.75, -1.5}},
      {NUMPY,
       "Mean",
       "\"axis\": [1, 2], \"keepdims\": true",
       H,
       NULL,
       MIX_FLOAT16,
       {.rank = 3, .dims = {1, 1, 1}},
       {1.75}},
      {NUMPY, "Mean", "\"axis\": null, \"keepdims\": false", I, NULL, F32, {.rank = 0}, {1.5}},
      {NUMPY, "Trapezoid", "\"x\": [0, 2], \"axis\": 1", A, NULL, F32, TRIPLE, {5, -1.5, -3}},
      {NUMPY, "Trapezoid", "\"x\": [5], \"axis\": 0", A, NULL, F32, {.rank = 2, .dims = {2, 3}}, {0}},
      {NUMPY, "Sum", "\"axis\": -1, \"keepdims\": false", A, NULL, F32, PAIR, {2, -1.5}},
      {NUMPY, "Max", "\"axis\": -1, \"keepdims\": false, \"initial\": null", A, NULL, F32, PAIR, {3, 4}},
      {NUMPY, "Min", "\"axis\": 2, \"keepdims\": false, \"initial\": -5", A, NULL, F32, PAIR, {-5, -6}},
      {NUMPY, "Prod", "\"axis\": 2, \"keepdims\": false, \"dtype\": null", A, NULL, F32, PAIR, {-6, -12}},
      {NUMPY, "Var", "\"axis\": 1, \"keepdims\": false", A, NULL, F32, TRIPLE, {2.25, 1.5625, 20.25}},
      {NUMPY, "Std", "\"axis\": 1, \"keepdims\": false", A, NULL, F32, TRIPLE, {1.5, 1.25, 4.5}},
      {NUMPY, "Argmax", "\"axis\": -1, \"keepdims\": false", A, NULL, MIX_INT32, PAIR, {2, 0}},
      {NUMPY, "Argmin", "\"axis\": null, \"keepdims\": false", A, NULL, MIX_INT32, {.rank = 0}, {5}},
      {NUMPY, "Any", "\"axis\": 1, \"keepdims\": false", A, NULL, MIX_BOOL, TRIPLE, {1, 1, 1}},
      {"keras.src.ops.math",
       "Logsumexp",
       "\"axis\": 1, \"keepdims\": false",
       A,
       NULL,
       F32,
       TRIPLE,
       {4.0485874, 0.5788897, 3.0001234}},
  };
  CHECK_ALL(rows);
}

static void shapes(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY,
       "Reshape",
       "\"newshape\": [-1, 3, 2]",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 3, 2}},
       {1, -2, 3, 4, 0.5, -6}},
      {NUMPY,
       "Transpose",
       "\"axes\": [0, 2, 1]",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 3, 2}},
       {1, 4, -2, 0.5, 3, -6}},
      {NUMPY, "ExpandDims", "\"axis\": 1", I, NULL, MIX_INT32, {.rank = 3, .dims = {1, 1, 2}}, {2, 1}},
      {NUMPY,
       "Swapaxes",
       "\"axis1\": 1, \"axis2\": 2",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 3, 2}},
       {1, 4, -2, 0.5, 3, -6}},
      {NUMPY,
       "Moveaxis",
       "\"source\": -1, \"destination\": 1",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 3, 2}},
       {1, 4, -2, 0.5, 3, -6}},
      {NUMPY,
       "Concatenate",
       "\"axis\": -1",
       "[" A ", " H "]",
       NULL,
       F32,
       {.rank = 3, .dims = {1, 2, 6}},
       {1, -2, 3, 2, 4, -1, 4, 0.5, -6, 0.5, 2, 3}},
      {NUMPY,
       "Stack",
       "\"axis\": 1",
       "[" I ", " I "]",
       NULL,
       MIX_INT32,
       {.rank = 3, .dims = {1, 2, 2}},
       {2, 1, 2, 1}},
      {NUMPY,
       "Split",
       "\"indices_or_sections\": [1], \"axis\": -1",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 2, 1}},
       {1, 4}},
      {NUMPY, "Flip", "\"axis\": 2", A, NULL, F32, FULL, {3, -2, 1, -6, 0.5, 4}},
      {NUMPY, "Roll", "\"shift\": 1, \"axis\": 2", A, NULL, F32, FULL, {3, 1, -2, -6, 4, 0.5}},
      {NUMPY,
       "Repeat",
       "\"repeats\": 2, \"axis\": 1",
       I,
       NULL,
       MIX_INT32,
       {.rank = 2, .dims = {1, 4}},
       {2, 2, 1, 1}},
      {NUMPY, "Tile", "\"repeats\": [1, 2]", I, NULL, MIX_INT32, {.rank = 2, .dims = {1, 4}}, {2, 1, 2, 1}},
      {NUMPY,
       "Pad",
       "\"pad_width\": [[0, 0], [1, 0]], \"mode\": \"constant\"",
       I,
       "\"constant_values\": 7",
       MIX_INT32,
       TRIPLE,
       {7, 2, 1}},
      {NUMPY,
       "Pad",
       "\"pad_width\": [[0, 0], [0, 1]], \"mode\": \"reflect\"",
       I,
       "\"constant_values\": null",
       MIX_INT32,
       TRIPLE,
       {2, 1, 2}},
  };
  CHECK_ALL(rows);
}

static void parts(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY, "GetItem", NULL, A ", [" ALL ", -1]", NULL, F32, TRIPLE, {4, 0.5, -6}},
      {NUMPY,
       "GetItem",
       NULL,
       A ", [" ELLIPSIS ", null, 1]",
       NULL,
       F32,
       {.rank = 3, .dims = {1, 2, 1}},
       {-2, 0.5}},
      {NUMPY,
       "GetItem",
       NULL,
       A ", [" ALL ", " ALL ", " SLICE("null", "null", "2") "]",
       NULL,
       F32,
       {.rank = 3, .dims = {1, 2, 2}},
       {1, 3, 4, -6}},
      {NUMPY,
       "GetItem",
       NULL,
       A ", [" ALL ", 0, " SLICE("null", "null", "-1") "]",
       NULL,
       F32,
       TRIPLE,
       {3, -2, 1}},
      {NUMPY, "GetItem", NULL, A ", [" ALL ", 0, " SLICE("-2", "9", "null") "]", NULL, F32, PAIR, {-2, 3}},
      {NUMPY, "GetItem", NULL, I ", 0", NULL, MIX_INT32, {.rank = 1, .dims = {2}}, {2, 1}},
      {NUMPY, "Take", "\"axis\": 2", A ", [0, -1]", NULL, F32, {.rank = 3, .dims = {1, 2, 2}}, {1, 3, 4, -6}},
  };
  CHECK_ALL(rows);
}

static void products(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY,
       "Matmul",
       NULL,
       A
       ", {\"class_name\": \"__numpy__\", \"config\": {\"value\": [1.0, 2.0, 3.0], \"dtype\": \"float32\"}}",
       NULL,
       F32,
       PAIR,
       {6, -13}},
      {NUMPY, "Dot", NULL, A ", 2.0", NULL, F32, FULL, {2, -4, 6, 8, 1, -12}},
      {NUMPY,
       "Einsum",
       "\"subscripts\": \"bij,bkj->bik\"",
       A ", " B,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 2, 2}},
       {-9, 5.5, 16, -15}},
  };
  CHECK_ALL(rows);
}

/* Numbers of NumPy's linalg for A, [[1, -2, 3], [4, 0.5, -6]]. */
static void linear_algebra(void **state) {
  (void)state;
#define LINALG "keras.src.ops.linalg"
  static const row rows[] = {
      {LINALG,
       "SVD",
       "\"full_matrices\": true, \"compute_uv\": false",
       A,
       NULL,
       F32,
       PAIR,
       {7.57830262, 2.96973557}},
      {LINALG,
       "Pinv",
       "\"rcond\": null",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 3, 2}},
       {0.22161895, 0.14017769, -0.19151037, -0.04540967, 0.13178677, -0.07699901}},
      {LINALG, "MatrixRank", "\"tol\": null", A, NULL, MIX_INT32, {.rank = 1, .dims = {1}}, {2}},
      {LINALG, "MatrixRank", "\"tol\": 3.0", A, NULL, MIX_INT32, {.rank = 1, .dims = {1}}, {1}},
#define MATRIX_NORM(ord, value)                                                                              \
  {                                                                                                          \
    LINALG, "Norm", "\"ord\": " ord ", \"axis\": [1, 2], \"keepdims\": false", A, NULL, F32,                 \
        {.rank = 1, .dims = {1}}, {                                                                          \
      value                                                                                                  \
    }                                                                                                        \
  }
      MATRIX_NORM("\"nuc\"", 10.54803819),
      MATRIX_NORM("2", 7.57830262),
      MATRIX_NORM("-2", 2.96973557),
      {LINALG,
       "Norm",
       "\"ord\": \"nuc\", \"axis\": [2, 1], \"keepdims\": true",
       A,
       NULL,
       F32,
       {.rank = 3, .dims = {1, 1, 1}},
       {10.54803819}},
  };
  CHECK_ALL(rows);
}

static void activations(void **state) {
  (void)state;
  static const row rows[] = {
      {"keras.src.ops.nn", "Relu", NULL, A, NULL, F32, FULL, {1, 0, 3, 4, 0.5, 0}},
      {"keras.src.ops.nn",
       "HardSigmoid",
       NULL,
       A,
       NULL,
       F32,
       FULL,
       {0.6666667, 0.1666667, 1, 1, 0.5833333, 0}},
      {"keras.src.ops.nn",
       "LeakyRelu",
       "\"negative_slope\": 0.5",
       A,
       NULL,
       F32,
       FULL,
       {1, -1, 3, 4, 0.5, -3}},
      {"keras.src.ops.nn", "Elu", "\"alpha\": 0.0", A, NULL, F32, FULL, {1, 0, 3, 4, 0.5, 0}},
      {"keras.src.ops.nn",
       "Gelu",
       "\"approximate\": false",
       H,
       NULL,
       MIX_FLOAT16,
       FULL,
       {1.9545, 3.9999, -0.15866, 0.34573, 1.9545, 2.99595}},
      {"keras.src.ops.nn",
       "Softmax",
       "\"axis\": 1",
       A,
       NULL,
       F32,
       FULL,
       {0.04742587, 0.0758582, 0.9998766, 0.9525741, 0.9241418, 0.0001234}},
      {"keras.src.ops.nn",
       "OneHot",
       "\"num_classes\": 3, \"axis\": -1, \"dtype\": \"int32\", \"sparse\": false",
       I,
       NULL,
       MIX_INT32,
       FULL,
       {0, 0, 1, 0, 1, 0}},
  };
  CHECK_ALL(rows);
}

/* Elements of all axes but the batch have the sum 1. */
static void softmax_of_several_axes(void **state) {
  (void)state;
  static const row r = {"keras.src.ops.nn",
                        "Softmax",
                        "\"axis\": [1, 2]",
                        A,
                        NULL,
                        F32,
                        FULL,
                        {0.03432673, 0.00170903, 0.25364208, 0.68947066, 0.02082021, 0.0000313}};
  check(&r);
}

/* ---- integers ---- */

#define N TENSOR("n", "[null, 2]", "int64")
#define LARGE "[[9007199254740993, 9223372036854775807]]"
#define LARGE_ARRAY                                                                                          \
  "{\"class_name\": \"__tensor__\", \"config\": {\"value\": " LARGE ", \"dtype\": \"int64\"}}"

/* A model of one layer behind `n`, also after it was written, on zeros. */
static void check_integers(const char *module, const char *config, const char *args, int64_t first,
                           int64_t second) {
  mix_text text = {.grows = true};
  mix_text_put(
      &text,
      "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
      "{\"name\": \"m\", \"trainable\": true, \"layers\": [" INPUT(
          "n", "[null, 2]",
          "int64") ", "
                   "{\"module\": \"%s\", \"class_name\": \"Add\", \"config\": {\"name\": \"op\"%s}, "
                   "\"registered_name\": null, \"name\": \"op\", \"inbound_nodes\": [{\"args\": [%s], "
                   "\"kwargs\": {}}]}], \"input_layers\": [[\"n\", 0, 0]], "
                   "\"output_layers\": [\"op\", 0, 0]}, "
                   "\"registered_name\": \"Functional\"}",
      module, config, args);
  const char *written = text.text;
  for (int i = 0; i < 2; i++) {
    int64_t got[2] = {0};
    mix_model *model = mix_model_from_json(written);
    if (!model) fail_msg("%s", mix_error_message());
    mix_tensor *y = mix_call(model->layer, mix_fill(MIX_SHAPE(1, 2), 0, MIX_INT64));
    assert_int_equal(mix_tensor_dtype(y), MIX_INT64);
    assert_int_equal(mix_tensor_read(y, MIX_INT64, got, 2), MIX_OK);
    assert_true(got[0] == first && got[1] == second);
    written = mix_model_to_json(model);
    if (!written) fail_msg("%s", mix_error_message());
  }
  mix_free(text.text);
}

/* 2^53 + 1 is no double, and 2^63 - 1 would become 2^63. */
static void large_integers_are_exact(void **state) {
  (void)state;
  const int64_t large = (INT64_C(1) << 53) + 1;
  MIX_SCOPE {
    check_integers(NUMPY, "", N ", 9007199254740993", large, large);
    check_integers(NUMPY, "", N ", " LARGE_ARRAY, large, INT64_MAX);
    check_integers("keras.layers", ", \"trainable\": true, \"dtype\": \"float32\"",
                   "[" N ", " LARGE_ARRAY "]", large, INT64_MAX);
  }
}

/* ---- several results ---- */

static void each_result_of_a_split(void **state) {
  (void)state;
  static const row r = {NUMPY,
                        "Split",
                        "\"indices_or_sections\": 3, \"axis\": 2",
                        A,
                        NULL,
                        F32,
                        {.rank = 3, .dims = {1, 2, 1}},
                        {3, -6}};
  char *text = text_of(&r), *last = strstr(text, "[\"op\", 0, 0]");
  last[10] = '2';
  mix_model *model = mix_model_from_json(text);
  expect_row(&r, result_of(model), "as read");
  expect_row(&r, result_of(mix_model_from_json(mix_model_to_json(model))), "as written");
  mix_free(text);
}

static void one_hot_of_the_highest_rank(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_deserialize(
      "{\"module\": \"keras.src.ops.nn\", \"class_name\": \"OneHot\", \"config\": {\"name\": \"o\", "
      "\"num_classes\": 3, \"axis\": -1}}",
      mix_semantics_named("keras3"));
  assert_no_error();
  mix_shape shape = {.rank = MIX_MAX_RANK};
  for (int i = 0; i < MIX_MAX_RANK; i++) shape.dims[i] = 1;
  expect_refused(mix_call(layer, mix_fill(shape, 1, MIX_INT32)), MIX_VALUE_ERROR, "more than 8 dimensions");
}

static void blocks_of_a_scalar(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_deserialize(
      "{\"module\": \"keras.src.ops.nn\", \"class_name\": \"DepthToSpace\", \"config\": {\"name\": \"d\", "
      "\"block_size\": 2, \"data_format\": \"channels_first\"}}",
      mix_semantics_named("keras3"));
  assert_no_error();
  expect_refused(mix_call(layer, mix_fill(MIX_SCALAR, 1, MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "(batch, channels, ...)");
}

/* ---- shapes that the values decide, bits, noise ---- */

static void counts_bits_and_partitions(void **state) {
  (void)state;
  static const row rows[] = {
      {NUMPY, "Bincount", "\"minlength\": 4", I, NULL, MIX_INT32, {.rank = 2, .dims = {1, 4}}, {0, 1, 1, 0}},
      {NUMPY,
       "Bincount",
       "\"weights\": [[0.5, 2]], \"minlength\": 3, \"sparse\": false",
       I,
       NULL,
       F32,
       TRIPLE,
       {0, 2, 0.5}},
      {NUMPY,
       "View",
       "\"dtype\": \"int32\"",
       A,
       NULL,
       MIX_INT32,
       FULL,
       {0x3f800000, -0x40000000, 0x40400000, 0x40800000, 0x3f000000, -0x3f400000}},
      {NUMPY, "View", "\"dtype\": \"int16\"", I, NULL, MIX_INT16, {.rank = 2, .dims = {1, 4}}, {2, 0, 1, 0}},
      {NUMPY, "View", "\"dtype\": null", H, NULL, MIX_FLOAT16, FULL, {2, 4, -1, 0.5, 2, 3}},
      {NUMPY, "Sort", "\"axis\": null", A, NULL, F32, {.rank = 1, .dims = {6}}, {-6, -2, 0.5, 1, 3, 4}},
      {NUMPY, "Argsort", "\"axis\": null", A, NULL, MIX_INT32, {.rank = 1, .dims = {6}}, {5, 1, 4, 0, 2, 3}},
      {NUMPY, "Sort", NULL, A, NULL, F32, FULL, {-2, 1, 3, -6, 0.5, 4}},
      /* of one row, as of a vector, it is a partition */
      {NUMPY,
       "Argpartition",
       "\"kth\": 1, \"axis\": null",
       I,
       NULL,
       MIX_INT32,
       {.rank = 1, .dims = {2}},
       {1, 0}},
      {NUMPY, "Argpartition", "\"kth\": 0, \"axis\": -1", I, NULL, MIX_INT32, PAIR, {1, 0}},
  };
  CHECK_ALL(rows);
}

/* A value beyond the bins would add one in Keras. */
static void too_large_a_value_is_an_error(void **state) {
  (void)state;
  const row r = {NUMPY, "Bincount", "\"minlength\": 2", I, NULL, MIX_INT32, PAIR, {0}};
  char *text = text_of(&r);
  mix_model *model = mix_model_from_json(text);
  mix_free(text);
  double counts[2];
  assert_int_not_equal(mix_tensor_read(result_of(model), MIX_FLOAT64, counts, 2), MIX_OK);
  expect_error(MIX_VALUE_ERROR, "index 2");
}

/* Along an axis of open size: parts of open sizes, which the batch then has. */
static void open_axes_are_split(void **state) {
  (void)state;
  static const char *const configs[][2] = {{"Vsplit", "\"indices_or_sections\": 2"},
                                           {"Split", "\"indices_or_sections\": 2, \"axis\": 0"},
                                           {"ArraySplit", "\"indices_or_sections\": 2, \"axis\": 0"}};
  for (size_t k = 0; k < sizeof configs / sizeof *configs; k++)
    MIX_SCOPE {
      const row r = {NUMPY, configs[k][0], configs[k][1], A, NULL, F32, FULL, {0}};
      char *text = text_of(&r);
      mix_model *model = mix_model_from_json(text);
      if (!model) fail_msg("%s: %s", r.class_name, mix_error_message());
      mix_free(text);
      mix_tensor *x = mix_fill(MIX_SHAPE(4, 2, 3), 1, F32), *i = mix_fill(MIX_SHAPE(4, 2), 1, MIX_INT32);
      mix_list *results = mix_call_outputs_with(
          model->layer, &(mix_call_options){.size = sizeof(mix_call_options),
                                            .inputs = mix_list_of(x, x, i, mix_cast(x, MIX_FLOAT16))});
      if (!results) fail_msg("%s: %s", r.class_name, mix_error_message());
      assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(results, 0)), MIX_SHAPE(2, 2, 3)));
    }
}

/* "int8" is the dtype of an input, although as a layer's it would name a quantization. */
static void bytes_are_read_as_numbers(void **state) {
  (void)state;
  const char *text =
      "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
      "{\"name\": \"m\", \"trainable\": true, \"layers\": [" INPUT(
          "a", "[null, 4]",
          "int8") ", {\"module\": \"keras.src.ops.numpy\", "
                  "\"class_name\": \"View\", \"config\": {\"name\": \"v\", "
                  "\"dtype\": \"float16\"}, \"name\": \"v\", \"inbound_nodes\": [{\"args\": [" TENSOR(
                      "a", "[null, 4]",
                      "int8") "], \"kwargs\": {}}]}], \"input_layers\": [[\"a\", 0, 0]], "
                              "\"output_layers\": [[\"v\", 0, 0]]}, \"registered_name\": \"Functional\"}";
  mix_model *model = mix_model_from_json(text);
  if (!model) fail_msg("%s", mix_error_message());
  mix_tensor *y = mix_model_call(model, ARRAY(MIX_INT8, MIX_SHAPE(1, 4), 0, 0x3c, 0, -0x40));
  if (!y) fail_msg("%s", mix_error_message());
  assert_int_equal(mix_tensor_dtype(y), MIX_FLOAT16);
  assert_true(at(y, 0) == 1 && at(y, 1) == -2);
}

/* Without a seed each call draws another noise, with one the same. */
static void elastic_noise(void **state) {
  (void)state;
  static const char *const seeds[] = {"null", "3"};
  for (int seeded = 0; seeded < 2; seeded++)
    MIX_SCOPE {
      char config[200];
      snprintf(config, sizeof config,
               "{\"module\": \"keras.src.ops.image\", \"class_name\": \"ElasticTransform\", \"config\": {"
               "\"name\": \"e\", \"alpha\": 2.0, \"sigma\": 1.0, \"seed\": %s}}",
               seeds[seeded]);
      mix_layer *layer = mix_layer_deserialize(config, mix_semantics_named("keras3"));
      if (!layer) fail_msg("%s", mix_error_message());
      mix_tensor *x = mix_reshape(mix_range(0, 72, 1, F32), MIX_SHAPE(2, 6, 6, 1));
      mix_tensor *difference = mix_subtract(mix_call(layer, x), mix_call(layer, x));
      const double moved = at(mix_reduce_max(mix_abs(difference), MIX_ALL_AXES, false), 0);
      assert_true(seeded ? moved == 0 : moved > 0);
      expect_refused(mix_call(layer, mix_cast(x, MIX_UINT8)), MIX_TYPE_ERROR, "expected floating-point");
    }
}

/* ---- training ---- */

#define LAYER(module, class_name, name, config, args)                                                        \
  ", {\"module\": \"" module "\", \"class_name\": \"" class_name "\", \"config\": {\"name\": \"" name        \
  "\"" config "}, \"name\": \"" name "\", \"inbound_nodes\": [{\"args\": [" args "], \"kwargs\": {}}]}"
#define NUMPY "keras.src.ops.numpy"
#define DENSE_CONFIG                                                                                         \
  ", \"trainable\": true, \"units\": 3, \"use_bias\": false, \"kernel_initializer\": \"ones\""
#define MEAN_CONFIG ", \"axis\": -1, \"keepdims\": false"
#define D TENSOR("d", "[null, 2, 3]", "float32")
#define SUM TENSOR("add", "[null, 2, 3]", "float32")
#define LAST TENSOR("last", "[null, 3]", "float32")

/* The mean of (dense(a) + a)[:, -1], whose gradient by a weight of row k is a[1][k] / 3. */
static void gradients_pass(void **state) {
  (void)state;
  static const char text[] =
      "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": {"
      "\"name\": \"m\", \"layers\": ["
      /* the layers */
      INPUT("a", "[null, 2, 3]", "float32") LAYER("keras.layers", "Dense", "d", DENSE_CONFIG, A)
          LAYER(NUMPY, "Add", "add", "", D ", " A) LAYER(NUMPY, "GetItem", "last", "", SUM ", [" ALL ", -1]")
              LAYER(NUMPY, "Mean", "mean", MEAN_CONFIG, LAST)
      /* the model */
      "], \"input_layers\": [\"a\", 0, 0], \"output_layers\": [\"mean\", 0, 0]}}";
  mix_model *model = mix_model_from_json(text);
  if (!model) fail_msg("%s", mix_error_message());
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_call(model->layer, ARRAY(F32, MIX_SHAPE(1, 2, 3), 1, -2, 3, 4, 0.5, -6));
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, y, mix_layer_trainable_weights(model->layer));
  assert_no_error();
  assert_near(at(y, 0), -1.5 - 0.5, 1e-6);
  static const double row_of_a[] = {4, 0.5, -6};
  for (int i = 0; i < 9; i++) assert_near(at(mix_list_get(gradients, 0), i), row_of_a[i / 3] / 3, 1e-6);
}

/* ---- names ---- */

/* The layer Add takes a list, the operation two operands; neither reads the other's call. */
static void layers_of_the_same_name_stay(void **state) {
  (void)state;
  static const row layer = {"keras.layers",
                            "Add",
                            "\"trainable\": true, \"dtype\": \"float32\"",
                            "[" A ", " B "]",
                            NULL,
                            F32,
                            FULL,
                            {3, 2, 2, 4.5, 2.5, -3}};
  static const row operation = {NUMPY, "Add", NULL, A ", " B, NULL, F32, FULL, {3, 2, 2, 4.5, 2.5, -3}};
  static const row confused = {NUMPY, "Add", NULL, "[" A ", " B "]", NULL, F32, FULL, {0}};
  char *text = text_of(&layer);
  mix_model *model = mix_model_from_json(text);
  expect_row(&layer, result_of(model), "as read");
  assert_ptr_equal(((mix_layer *)mix_list_get(model->layer->layers, 4))->kind, &mix_add_layer_kind);
  json_t *object = mix_json_parse(text, "test"), *legacy = mix_legacy_model_json(object);
  char *legacy_text = mix_json_text(legacy);
  model = mix_model_from_json(legacy_text);
  expect_row(&layer, result_of(model), "of a legacy file");
  assert_ptr_equal(((mix_layer *)mix_list_get(model->layer->layers, 4))->kind, &mix_add_layer_kind);
  json_decref(object);
  json_decref(legacy);
  mix_free(legacy_text);
  mix_free(text);
  check(&operation);
  text = text_of(&confused);
  expect_refused(mix_model_from_json(text), MIX_TYPE_ERROR, "x1");
  mix_free(text);
}

static mix_list *zeros_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_zeros_like(mix_call_input(args, 0)));
}

/* A class of the user's that is named as an operation is. */
static void registered_classes_stay(void **state) {
  (void)state;
  static const mix_layer_class mean = {.size = sizeof mean, .name = "Negative", .call = zeros_call};
  static const row operation = {NUMPY, "Negative", NULL, A, NULL, F32, FULL, {-1, 2, -3, -4, -0.5, 6}};
  assert_int_equal(mix_register_layer("Custom", NULL, &mean), MIX_OK);
  check(&operation);
  char *text = text_of(&(const row){"mine", "Negative", NULL, A, NULL, F32, FULL, {0}});
  mix_tensor *y = result_of(mix_model_from_json(text));
  for (int i = 0; i < 6; i++) assert_near(at(y, i), 0, 0);
  mix_free(text);
}

/* ---- what is refused ---- */

static void refusals(void **state) {
  (void)state;
  static const struct {
    row row;
    mix_status status;
    const char *mentions;
  } rows[] = {
      {{NUMPY, "Corrcoef", NULL, A}, MIX_UNSUPPORTED, "Keras operation 'Corrcoef'"},
      {{NUMPY, "Nonzero", NULL, A}, MIX_UNSUPPORTED, "depends on the values"},
      {{NUMPY, "Unique", "\"size\": null", A}, MIX_UNSUPPORTED, "its argument size"},
      {{NUMPY, "Bincount", NULL, I}, MIX_UNSUPPORTED, "more than the largest value"},
      {{NUMPY, "Bincount", "\"minlength\": 3, \"sparse\": true", I}, MIX_UNSUPPORTED, "sparse"},
      {{NUMPY, "Bincount", "\"minlength\": 3, \"weights\": [1, 2, 3]", I},
       MIX_VALUE_ERROR,
       "weights like it"},
      {{NUMPY, "Bincount", "\"minlength\": 3", A}, MIX_VALUE_ERROR, "a vector or a matrix"},
      {{NUMPY, "View", "\"dtype\": \"int64\"", A}, MIX_VALUE_ERROR, "do not divide"},
      {{NUMPY, "View", "\"dtype\": \"bool\"", A}, MIX_TYPE_ERROR, "bool"},
      {{NUMPY, "Argpartition", "\"kth\": 1, \"axis\": 3", A}, MIX_VALUE_ERROR, "axis 3"},
      {{NUMPY, "Vsplit", "\"indices_or_sections\": [1]", A}, MIX_UNSUPPORTED, "whose size is known"},
      {{NUMPY, "Vsplit", "\"indices_or_sections\": 0", A}, MIX_VALUE_ERROR, "split in 0"},
      {{"keras.src.ops.image", "ElasticTransform", "\"sigma\": 0", A}, MIX_VALUE_ERROR, "sigma"},
      {{"keras.src.ops.image", "ElasticTransform", "\"fill_mode\": \"mirror\"", A},
       MIX_VALUE_ERROR,
       "fill_mode"},
      {{"keras.src.ops.image", "ElasticTransform", "\"interpolation\": \"bicubic\"", A},
       MIX_VALUE_ERROR,
       "nearest or bilinear"},
      {{"keras.src.ops.math", "SegmentSum", "\"num_segments\": null", A ", " I},
       MIX_UNSUPPORTED,
       "give num_segments"},
      {{"keras.src.ops.linalg", "Eigh", NULL, A}, MIX_VALUE_ERROR, "expected square matrices"},
      {{"keras.src.ops.linalg", "Eig", NULL, A}, MIX_VALUE_ERROR, "expected square matrices"},
      {{"keras.src.ops.linalg", "SVD", "\"full_matrices\": true, \"compute_uv\": true", I},
       MIX_VALUE_ERROR,
       "expected matrices"},
      {{"keras.src.ops.linalg", "Pinv", "\"rcond\": \"small\"", A}, MIX_TYPE_ERROR, "rcond"},
      {{"keras.src.ops.linalg", "Lstsq", "\"rcond\": null", A ", " B},
       MIX_VALUE_ERROR,
       "expected (m, n) and (m) or (m, k)"},
      {{"keras.src.ops.linalg", "Norm", "\"ord\": 3, \"axis\": [1, 2], \"keepdims\": false", A},
       MIX_UNSUPPORTED,
       "nuc, 1, -1, 2, -2"},
      {{"keras.src.ops.linalg", "Inv", NULL, A}, MIX_VALUE_ERROR, "expected square matrices"},
      {{"keras.src.ops.math", "TopK", "\"k\": 4, \"sorted\": true", A},
       MIX_VALUE_ERROR,
       "k is 4; expected 0 to 3"},
      {{NUMPY, "Cumsum", "\"axis\": 3", A}, MIX_VALUE_ERROR, "axis 3"},
      {{NUMPY, "Sort", "\"axis\": 3", A}, MIX_VALUE_ERROR, "axis 3"},
      {{NUMPY, "Rot90", "\"k\": 1, \"axes\": [1, 1]", A}, MIX_VALUE_ERROR, "names axis 1 twice"},
      {{NUMPY, "Diagonal", "\"axis1\": 1, \"axis2\": -2", A}, MIX_VALUE_ERROR, "both 1"},
      {{NUMPY, "Gcd", NULL, A ", " B}, MIX_TYPE_ERROR, "expected integers"},
      {{NUMPY, "BitwiseAnd", NULL, A ", " B}, MIX_TYPE_ERROR, "bitwise_and"},
      {{NUMPY, "Percentile", "\"axis\": 1, \"method\": \"linear\"", A ", 101"},
       MIX_VALUE_ERROR,
       "q of the Keras"},
      {{NUMPY, "Tensordot", "\"axes\": 4", A ", " B}, MIX_VALUE_ERROR, "axes"},
      {{NUMPY, "Tensordot", "\"axes\": [[1, 1], [1, 2]]", A ", " B}, MIX_VALUE_ERROR, "axes"},
      {{"keras.src.ops.linalg", "Qr", "\"mode\": \"raw\"", A}, MIX_VALUE_ERROR, "mode"},
      {{NUMPY, "Trapezoid", "\"x\": [[1, 2], [3, 4]], \"axis\": 2", A},
       MIX_VALUE_ERROR,
       "places along the axis"},
      {{NUMPY, "Cross", NULL, A ", [1, 2, 3, 4]"}, MIX_VALUE_ERROR, "expected 2 or 3"},
      {{"keras.src.ops.einops", "Rearrange", NULL, A ", \"b (h k) c -> b h c\""}, MIX_VALUE_ERROR, "pattern"},
      /* numbers whose products and sums int64 does not have, and what is missing */
      {{"keras.src.ops.einops", "Rearrange", NULL, A ", \"b (h k) c -> b h k c\"",
        "\"h\": 4611686018427387904, \"k\": 4"},
       MIX_VALUE_ERROR,
       "pattern"},
      {{NUMPY, "Diagonal", "\"offset\": -9223372036854775808, \"axis1\": 1, \"axis2\": 2", A},
       MIX_VALUE_ERROR,
       "diagonal -9223372036854775808"},
      {{"keras.src.ops.nn", "MaxPool", "\"padding\": \"same\"", A}, MIX_TYPE_ERROR, "operand pool_size"},
      {{"keras.src.ops.nn", "AveragePool",
        "\"pool_size\": 9223372036854775807, \"strides\": 1, \"padding\": \"same\"", A},
       MIX_VALUE_ERROR,
       "pool_size"},
      {{"keras.src.ops.math", "RFFT", "\"fft_length\": 9223372036854775807", A},
       MIX_VALUE_ERROR,
       "fft_length"},
      {{"keras.src.ops.math", "ExtractSequences",
        "\"sequence_length\": 9223372036854775807, \"sequence_stride\": 1", A},
       MIX_VALUE_ERROR,
       "sequence_length"},
      {{"keras.src.ops.image", "PadImages",
        "\"top_padding\": -9223372036854775808, \"target_height\": 9223372036854775807, "
        "\"left_padding\": 0, \"right_padding\": 0, \"data_format\": \"channels_first\"",
        A},
       MIX_TYPE_ERROR,
       "top_padding"},
      {{"keras.src.ops.core", "Scatter", "\"shape\": [4294967296, 4294967296, 4]", I ", " A},
       MIX_VALUE_ERROR,
       "shape"},
      {{"keras.src.ops.core", "Scatter", "\"shape\": [-4, 2]", I ", " A}, MIX_VALUE_ERROR, "shape"},
      {{NUMPY, "Quantile", "\"axis\": 1", A}, MIX_TYPE_ERROR, "lacks its operand q"},
      {{"keras.src.ops.image", "Resize", "\"size\": 2, \"interpolation\": \"cubic\"", A},
       MIX_VALUE_ERROR,
       "interpolation"},
      {{"keras.src.ops.image", "MapCoordinates", "\"order\": 1, \"fill_mode\": \"\"", A ", " A},
       MIX_VALUE_ERROR,
       "fill_mode"},
      {{NUMPY, "Add", NULL, A}, MIX_TYPE_ERROR, "lacks its operand x2"},
      {{NUMPY, "Add", NULL, A ", null"}, MIX_TYPE_ERROR, "lacks its operand x2"},
      {{NUMPY, "Add", NULL, A ", " B ", 3"}, MIX_TYPE_ERROR, "3 operands"},
      {{NUMPY, "Add", NULL, A ", 3", "\"x2\": 4"}, MIX_TYPE_ERROR, "twice the operand 'x2'"},
      {{NUMPY, "Add", NULL, A ", 3", "\"z\": 4"}, MIX_TYPE_ERROR, "unknown operand 'z'"},
      {{NUMPY, "Add", NULL, A ", \"three\""}, MIX_TYPE_ERROR, "x2 of the Keras operation Add is a string"},
      {{NUMPY, "Add", NULL, A ", {\"tensor\": 0}"}, MIX_VALUE_ERROR, "without class_name"},
      {{NUMPY, "Add", NULL, A ", {\"class_name\": \"x\", \"$tensor\": 7}"},
       MIX_VALUE_ERROR,
       "no operation takes"},
      {{NUMPY, "Add", NULL, A ", {\"class_name\": \"x\", \"$tensor\": 0}"},
       MIX_VALUE_ERROR,
       "no operation takes"},
      {{NUMPY, "GetItem", NULL, A ", [" ALL ", " SLICE("null", "null", "null, \"of\": {\"$tensor\": 7}") "]"},
       MIX_VALUE_ERROR,
       "no operation takes"},
      {{NUMPY, "Add", NULL, A ", [1, [2]]"}, MIX_TYPE_ERROR, "lists of numbers"},
      {{NUMPY, "Add", NULL, A ", [true, 2, 3]"}, MIX_TYPE_ERROR, "one length and kind"},
      {{NUMPY, "Add", NULL, A ", [[], []]"}, MIX_VALUE_ERROR, "add"},
      {{NUMPY, "Add", NULL, "1, 2"}, MIX_VALUE_ERROR, "no tensors"},
      {{NUMPY, "Mean", "\"axis\": \"x\"", A}, MIX_TYPE_ERROR, "axis"},
      {{NUMPY, "Mean", "\"axis\": 3", A}, MIX_VALUE_ERROR, "axis 3"},
      {{NUMPY, "Mean", "\"axis\": [1, -2]", A}, MIX_VALUE_ERROR, "twice"},
      {{NUMPY, "Mean", "\"keepdim\": true", A}, MIX_VALUE_ERROR, "no option 'keepdim'"},
      {{NUMPY, "Reshape", "\"newshape\": [-1, -1]", A}, MIX_VALUE_ERROR, "newshape"},
      {{NUMPY, "Reshape", "\"newshape\": [4294967296, 4294967296]", A}, MIX_VALUE_ERROR, "newshape"},
      {{NUMPY, "ExpandDims", "\"axis\": [0, 1, 2, 3, 4, 5, 6, 7]", A}, MIX_VALUE_ERROR, "dimensions"},
      {{NUMPY, "Split", "\"indices_or_sections\": 2, \"axis\": 2", A}, MIX_VALUE_ERROR, "split in 2"},
      {{NUMPY, "Split", "\"indices_or_sections\": [3, 1], \"axis\": 2", A}, MIX_VALUE_ERROR, "behind"},
      {{NUMPY, "Repeat", "\"repeats\": 9000000000000000000, \"axis\": 1", A}, MIX_VALUE_ERROR, "repeats"},
      {{NUMPY, "Repeat", "\"repeats\": [1, 2], \"axis\": 1", A}, MIX_TYPE_ERROR, "repeats"},
      {{NUMPY, "Pad", "\"pad_width\": [[1, 1]], \"mode\": \"edge\"", A}, MIX_VALUE_ERROR, "mode"},
      {{NUMPY, "Pad", "\"pad_width\": \"x\", \"mode\": \"constant\"", A}, MIX_TYPE_ERROR, "pad_width"},
      {{NUMPY, "Pad", "\"pad_width\": [[0, 0], [1, 0]], \"mode\": \"constant\"", I,
        "\"constant_values\": 9223372036854775806"},
       MIX_TYPE_ERROR,
       "expected a number that float64 holds"},
      {{NUMPY, "Pad", "\"pad_width\": [[0, 0], [9, 0], [0, 0]], \"mode\": \"reflect\"", A},
       MIX_VALUE_ERROR,
       "reflect"},
      {{NUMPY, "GetItem", NULL, A ", [" ALL ", 2]"}, MIX_VALUE_ERROR, "index 2"},
      {{NUMPY, "GetItem", NULL, A ", [0, 0, 0, 0]"}, MIX_VALUE_ERROR, "4 indices"},
      {{NUMPY, "GetItem", NULL, A ", [" ELLIPSIS ", " ELLIPSIS "]"}, MIX_VALUE_ERROR, "ellipses"},
      {{NUMPY, "GetItem", NULL, A ", [" ALL ", " SLICE("null", "null", "0") "]"},
       MIX_TYPE_ERROR,
       "a step other than 0"},
      {{NUMPY, "GetItem", NULL, A ", [" SLICE("\"x\"", "null", "1") "]"},
       MIX_TYPE_ERROR,
       "slices of integers"},
      {{NUMPY, "GetItem", NULL, A ", \"x\""}, MIX_TYPE_ERROR, "key"},
      {{NUMPY, "Concatenate", "\"axis\": 1", A}, MIX_TYPE_ERROR, "list of tensors"},
      {{NUMPY, "Concatenate", "\"axis\": 1", "[" A ", \"b\"]"}, MIX_TYPE_ERROR, "in its list"},
      {{NUMPY, "Einsum", "\"subscripts\": \"bij\"", A ", " B}, MIX_VALUE_ERROR, "einsum"},
      {{NUMPY, "Where", NULL, A ", null, null"}, MIX_UNSUPPORTED, "Where"},
      {{"keras.src.ops.core", "Cast", "\"dtype\": \"float7\"", A}, MIX_VALUE_ERROR, "float7"},
      {{"keras.src.ops.nn", "OneHot", "\"num_classes\": -4", I}, MIX_VALUE_ERROR, "num_classes"},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    MIX_SCOPE {
      char *text = text_of(&rows[k].row);
      if (mix_model_from_json(text)) fail_msg("row %zu, %s, is read", k, rows[k].row.class_name);
      expect_error(rows[k].status, rows[k].mentions);
      mix_free(text);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(binary),
      cmocka_unit_test(unary),
      cmocka_unit_test(reductions),
      cmocka_unit_test(shapes),
      cmocka_unit_test(parts),
      cmocka_unit_test(products),
      cmocka_unit_test(linear_algebra),
      cmocka_unit_test(activations),
      cmocka_unit_test(softmax_of_several_axes),
      cmocka_unit_test(large_integers_are_exact),
      cmocka_unit_test(each_result_of_a_split),
      cmocka_unit_test(one_hot_of_the_highest_rank),
      cmocka_unit_test(blocks_of_a_scalar),
      cmocka_unit_test(counts_bits_and_partitions),
      cmocka_unit_test(too_large_a_value_is_an_error),
      cmocka_unit_test(bytes_are_read_as_numbers),
      cmocka_unit_test(open_axes_are_split),
      cmocka_unit_test(elastic_noise),
      cmocka_unit_test(gradients_pass),
      cmocka_unit_test(layers_of_the_same_name_stay),
      cmocka_unit_test(registered_classes_stay),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
