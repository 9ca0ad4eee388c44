/* Integers that a model's text gives where none fits: operations, references to tensors. Each is an error
 * that says where, and none acts as the number that its lower 32 bits are. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "model/model.h"
#include "saving/keras3_text.h"

typedef struct row {
  const char *function, *call; /* # in it: the number */
  const char *part;            /* of the message, with # too */
} row;

/* The lower 32 bits of the first two are 1 and 0. */
static const char *const numbers[] = {"4294967297", "-4294967296", "2147483648", "9223372036854775807",
                                      "-9223372036854775808"};

/* With the number for each #, and " for each '. The caller frees it. */
static char *filled(const char *text, const char *number) {
  mix_text out = {.grows = true};
  for (; *text; text++)
    if (*text == '#')
      mix_text_put(&out, "%s", number);
    else
      mix_text_put(&out, "%c", *text == '\'' ? '"' : *text);
  assert_false(out.failed);
  return out.text;
}

static void check_refused(const row *r, const char *text, const char *number) {
  char *whole = filled(text, number), *part = filled(r->part, number);
  MIX_SCOPE {
    if (mix_model_from_json(whole)) fail_msg("%s %s loads with %s", r->function, r->call, number);
    if (!strstr(mix_error_message(), part))
      fail_msg("%s with %s: %s", r->function, number, mix_error_message());
    const mix_status status = mix_error_take(NULL, 0);
    assert_true(status == MIX_VALUE_ERROR || status == MIX_TYPE_ERROR || status == MIX_UNSUPPORTED);
  }
  mix_free(whole);
  mix_free(part);
}

static void check_rows(const row *rows, size_t count, char *(*text_of)(const row *r)) {
  for (size_t k = 0; k < count; k++) {
    char *text = text_of(&rows[k]);
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) check_refused(&rows[k], text, numbers[n]);
    mix_free(text);
  }
}
#define CHECK_ROWS(rows, text_of) check_rows(rows, sizeof rows / sizeof *rows, text_of)

/* ---- operations of Keras 3 ---- */

/* The function is MODULE.CLASS; the call is config | args. */
static char *keras3_text(const row *r) {
  const char *class_name = strchr(r->function, '.') + 1, *args = strchr(r->call, '|') + 1;
  mix_text text = {.grows = true};
  mix_text_put(&text, "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", "
                      "\"config\": {\"name\": \"m\", \"trainable\": true, \"layers\": [" INPUT(
                          "a", "[null, 2, 3]", "float32") AND_INPUT("i", "[null, 2]", "int32"));
  mix_text_put(&text,
               ", {'module': 'keras.src.ops.%.*s', 'class_name': '%s', 'config': {'name': 'op'%s%.*s}, "
               "'registered_name': '%s', 'name': 'op', 'inbound_nodes': [{'args': [%s], 'kwargs': {}}]}",
               (int)(class_name - r->function - 1), r->function, class_name, *r->call == '|' ? "" : ", ",
               (int)(args - r->call - 1), r->call, class_name, args);
  mix_text_put(&text, "], 'input_layers': [['a', 0, 0], ['i', 0, 0]], 'output_layers': ['op', 0, 0]}, "
                      "'registered_name': 'Functional'}");
  assert_false(text.failed);
  return text.text;
}

#define A TENSOR("a", "[null, 2, 3]", "float32")
#define I TENSOR("i", "[null, 2]", "int32")
#define SLICE(start, stop, step)                                                                             \
  "{'class_name': '__slice__', 'config': {'start': " start ", 'stop': " stop ", 'step': " step "}}"
#define ALL SLICE("null", "null", "null")

static void keras_operations(void **state) {
  (void)state;
  static const row rows[] = {
      {"numpy.Mean", "'axis': #|" A, "axis"},
      {"numpy.Sum", "'axis': [0, #]|" A, "axis"},
      {"numpy.Argmax", "'axis': #|" A, "axis"},
      {"numpy.Average", "'axis': #|" A, "axis"},
      {"numpy.ExpandDims", "'axis': #|" A, "axis"},
      {"numpy.Squeeze", "'axis': #|" A, "axis"},
      {"numpy.BroadcastTo", "'shape': [1, 2, #]|" A, "broadcast_to"},
      {"numpy.Transpose", "'axes': [0, #, 2]|" A, "axes"},
      {"numpy.Swapaxes", "'axis1': #, 'axis2': 1|" A, "axis1"},
      {"numpy.Swapaxes", "'axis1': 1, 'axis2': #|" A, "axis2"},
      {"numpy.Moveaxis", "'source': #, 'destination': 1|" A, "source"},
      {"numpy.Moveaxis", "'source': 1, 'destination': #|" A, "destination"},
      {"numpy.Concatenate", "'axis': #|[" A ", " A "]", "axis"},
      {"numpy.Stack", "'axis': #|[" A ", " A "]", "axis"},
      {"numpy.Split", "'indices_or_sections': #, 'axis': 2|" A, "not split in"},
      {"numpy.Split", "'indices_or_sections': [#], 'axis': 2|" A, "indices_or_sections"},
      {"numpy.Split", "'indices_or_sections': 1, 'axis': #|" A, "axis"},
      {"core.Unstack", "'num': #, 'axis': 1|" A, "num is"},
      {"core.Unstack", "'num': 2, 'axis': #|" A, "axis"},
      {"numpy.Repeat", "'repeats': 2, 'axis': #|" A, "axis"},
      {"numpy.Flip", "'axis': #|" A, "axis"},
      {"numpy.Roll", "'shift': 1, 'axis': #|" A, "axis"},
      {"numpy.Pad", "'pad_width': [[0, 0], [0, #], [0, 0]], 'mode': 'constant'|" A, "pad_width"},
      {"numpy.Round", "'decimals': #|" A, "decimals"},
      {"numpy.Take", "'axis': #|" A ", " I, "axis"},
      {"numpy.GetItem", "|" A ", [" ALL ", #]", "index"},
      {"numpy.GetItem", "|" A ", [" ALL ", " SLICE("null", "null", "#") "]", "key"},
      {"core.Slice", "'shape': [1, 1, 1]|" A ", [0, #, 0]", "axis 1 has no elements"},
      {"core.Slice", "'shape': [1, #, 1]|" A ", [0, 0, 0]", "axis 1 has no elements"},
      {"nn.Softmax", "'axis': #|" A, "axis"},
      {"nn.Softmax", "'axis': [1, #]|" A, "axis"},
      {"nn.Glu", "'axis': #|" A, "axis"},
      {"nn.OneHot", "'num_classes': 3, 'axis': #|" I, "axis"}};
  CHECK_ROWS(rows, keras3_text);
}

/* More numbers fit these: 2^32 + 1 repeats are that many. */
static void sizes_of_keras_operations(void **state) {
  (void)state;
  static const row rows[] = {{"numpy.Reshape", "'newshape': [#, 6]|" A, "newshape"},
                             {"numpy.Repeat", "'repeats': #, 'axis': 1|" A, "repeats"},
                             {"numpy.Tile", "'repeats': [1, 1, #]|" A, "repeats"},
                             {"nn.OneHot", "'num_classes': #|" I, "num_classes"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    char *text = keras3_text(&rows[k]), *large = filled(text, numbers[0]);
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
      if (n % 2) check_refused(&rows[k], text, numbers[n]);
    MIX_SCOPE {
      mix_model *model = mix_model_from_json(large);
      if (!model) fail_msg("%s: %s", rows[k].function, mix_error_message());
      const mix_functional *graph = mix_layer_data(model->layer);
      const mix_shape shape = mix_tensor_shape(graph->outputs[0]);
      int64_t most = 0;
      for (int i = 0; i < shape.rank; i++) most = shape.dims[i] > most ? shape.dims[i] : most;
      assert_int_equal(most % (INT64_C(4294967297)), 0);
      assert_true(most);
    }
    mix_free(text);
    mix_free(large);
  }
}

/* ---- operations of TensorFlow ---- */

static char *tf_text(const row *r) {
  mix_text text = {.grows = true};
  mix_text_put(
      &text,
      "{'class_name': 'Functional', 'config': {'name': 'm', 'layers': [{'class_name': 'InputLayer', "
      "'config': {'batch_input_shape': [null, 2, 3], 'dtype': 'float32', 'name': 'x'}, 'name': 'x', "
      "'inbound_nodes': []}, {'class_name': 'TFOpLambda', 'config': {'name': 'o', 'trainable': true, "
      "'dtype': 'float32', 'function': '%s'}, 'name': 'o', 'inbound_nodes': [%s]}], "
      "'input_layers': [['x', 0, 0]], 'output_layers': [['o', 0, 0]]}, "
      "'keras_version': '2.15.0', 'backend': 'tensorflow'}",
      r->function, r->call);
  assert_false(text.failed);
  return text.text;
}

static void tf_operations(void **state) {
  (void)state;
#undef ALL
#define ALL "{'start': null, 'stop': null, 'step': null}"
  static const row rows[] = {
      {"math.reduce_sum", "['x', 0, 0, {'axis': #}]", "axis is #"},
      {"math.reduce_sum", "['x', 0, 0, {'axis': [1, #]}]", "axis is"},
      {"nn.moments", "['x', 0, 0, {'axes': [#]}]", "axes is"},
      {"math.argmax", "['x', 0, 0, {'axis': #}]", "axis is #"},
      {"nn.softmax", "['x', 0, 0, {'axis': #}]", "axis is #"},
      {"reshape", "['x', 0, 0, {'shape': [-1, #]}]", "shape is"},
      {"compat.v1.transpose", "['x', 0, 0, {'perm': [0, #, 1]}]", "perm is"},
      {"expand_dims", "['x', 0, 0, {'axis': #}]", "axis is #"},
      {"compat.v1.squeeze", "['x', 0, 0, {'axis': [#]}]", "axis is"},
      {"tile", "['x', 0, 0, {'multiples': [1, #, 1]}]", "multiples is"},
      {"repeat", "['x', 0, 0, {'repeats': #, 'axis': 1}]", "repeats is #"},
      {"repeat", "['x', 0, 0, {'repeats': 2, 'axis': #}]", "axis is #"},
      {"compat.v1.gather", "['x', 0, 0, {'indices': [2, 0], 'axis': #}]", "axis is #"},
      {"compat.v1.gather", "['x', 0, 0, {'indices': [2], 'axis': 2, 'batch_dims': #}]", "batch_dims is #"},
      {"reverse", "['x', 0, 0, {'axis': [#]}]", "axis is"},
      {"compat.v1.pad", "['x', 0, 0, {'paddings': [[0, 0], [0, #], [0, 0]]}]", "paddings is"},
      {"split", "['x', 0, 0, {'num_or_size_splits': #, 'axis': 2}]", "num_or_size_splits is #"},
      {"split", "['x', 0, 0, {'num_or_size_splits': [1, #], 'axis': 2}]", "num_or_size_splits is"},
      {"split", "['x', 0, 0, {'num_or_size_splits': 3, 'axis': #}]", "axis is #"},
      {"unstack", "['x', 0, 0, {'axis': #}]", "axis is #"},
      {"unstack", "['x', 0, 0, {'axis': 1, 'num': #}]", "num is #"},
      {"concat", "[['x', 0, 0, {'axis': #}], ['x', 0, 0, {'axis': #}]]", "axis is #"},
      {"stack", "[['x', 0, 0, {'axis': #}], ['x', 0, 0, {'axis': #}]]", "axis is #"},
      {"one_hot", "['x', 0, 0, {'depth': #}]", "depth is #"},
      {"one_hot", "['x', 0, 0, {'depth': 3, 'axis': #}]", "axis is #"},
      {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [" ALL ", #]}]", "# is outside axis 1"},
      {"__operators__.getitem", "['x', 0, 0, {'slice_spec': [" ALL ", {'start': 0, 'stop': 1, 'step': #}]}]",
       "slice_spec is"},
      /* references */
      {"math.abs", "['x', #, 0, {}]", "call # of layer"},
      {"math.abs", "['x', 0, #, {}]", "result # of layer"},
      {"math.add", "['x', 0, 0, {'y': ['x', #, 0]}]", "call # of layer"},
      {"math.add", "['x', 0, 0, {'y': ['x', 0, #]}]", "result # of layer"}};
  CHECK_ROWS(rows, tf_text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keras_operations),
                                     cmocka_unit_test(sizes_of_keras_operations),
                                     cmocka_unit_test(tf_operations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
