/* The target of ONNX on damaged graphs. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_onnx.c"
#include "onnx/graphs.h"
#include <math.h>
#include <stdio.h>

static void damage(mix_message good, int rounds, uint64_t seed) {
  static bytes file;
  assert_true(!good.failed && good.size <= sizeof file.data);
  memcpy(file.data, good.data, good.size);
  file.size = good.size;
  mix_message_free(&good);
  MIX_SCOPE {
    mix_onnx_file read;
    assert_true(mix_onnx_open_memory(&read, "good", file.data, file.size));
    assert_non_null(mix_import_file(&read, NULL));
  }
  mutate_and_run(&file, rounds, seed);
}

/* ---- any operator with any operands and attributes ---- */

static const char *one_of(const char *const *names, int count) { return names[mutate_below((size_t)count)]; }
#define ONE_OF(names) one_of(names, (int)(sizeof names / sizeof *names))

static int64_t any_integer(void) {
  static const int64_t limits[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -1000, 1000, 1 << 24, 64};
  if (!mutate_below(4)) return limits[mutate_below(sizeof limits / sizeof *limits)];
  return (int64_t)mutate_below(8) - 3;
}

static void add_attributes(void) {
  static const char *const names[] = {
      "axis",         "axes",        "keepdims",    "perm",           "pads",
      "strides",      "dilations",   "group",       "auto_pad",       "mode",
      "kernel_shape", "to",          "alpha",       "split",          "starts",
      "ends",         "steps",       "num_outputs", "blocksize",      "count_include_pad",
      "ceil_mode",    "transA",      "transB",      "equation",       "hidden_size",
      "direction",    "layout",      "num_groups",  "allowzero",      "batch_dims",
      "value",        "activations", "upper",       "output_padding", "select_last_index",
      "exclusive",    "start",       "end",         "nearest_mode",   "value_int",
      "value_ints",   "bias",        "lambd",       "training_mode"};
  static const char *const words[] = {"",      "SAME_UPPER", "VALID", "linear",        "reflect",
                                      "DCR",   "ij,jk->ik",  "tanh",  "bidirectional", "reverse",
                                      "floor", "..."};
  for (size_t count = mutate_below(4); count > 0; count--) {
    const char *name = ONE_OF(names);
    int64_t list[8];
    const int length = (int)mutate_below(8);
    for (int i = 0; i < length; i++) list[i] = any_integer();
    switch (mutate_below(5)) {
    case 0: set_int(name, any_integer()); break;
    case 1: set_float(name, (float)any_integer()); break;
    case 2: set_string(name, ONE_OF(words)); break;
    default: set_ints(name, length, list); break;
    }
    if (!mutate_below(8)) { /* numbers of another type than the list's */
      mix_message inner = {0};
      for (int i = 0; i < length; i++) mix_message_float(&inner, MIX_ONNX_ATTRIBUTE_FLOATS, (float)list[i]);
      attribute(name, MIX_ONNX_IS_FLOATS, &inner);
    }
  }
}

/* Operands by all that inputs and constants can be: data of ranks 2, 3 and 4, of one open axis more,
 * integers, conditions, sizes in part known, weights, numbers, nothing at all. */
static mix_message any_node(const char *op, int64_t opset) {
  static const char *const operands[] = {"x",     "m",    "s",     "i",   "open", "w",     "k",
                                         "v",     "n",    "f",     "nan", "huge", "sizes", "part",
                                         "empty", "flag", "table", "_",   "w3"};
  static const char *const outputs[] = {"y", "y y2", "y y2 y3", "_ y", "y _ y3"};
  const double numbers[] = {NAN, 1e300};
  const int64_t limits[] = {INT64_MAX, INT64_MIN};
  graph g = {{0}};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_input(&g, "m", MIX_FLOAT32, DIMS(-1, 4, 6, 6));
  add_input(&g, "s", MIX_FLOAT32, DIMS(-1, 3, 4));
  add_input(&g, "i", MIX_INT64, DIMS(-1, 4));
  add_input(&g, "open", MIX_FLOAT32, DIMS(-1, -1, 4));
  add_input(&g, "flag", MIX_BOOL, DIMS(-1, 4));
  add_floats(&g, "w", DIMS(4, 4));
  add_floats(&g, "k", DIMS(4, 4, 3, 3));
  add_floats(&g, "w3", DIMS(1, 16, 4));
  add_floats(&g, "v", DIMS(4));
  add_floats(&g, "table", DIMS(6, 4));
  add_tensor(&g, "n", MIX_INT64, 0, NULL, &(int64_t){2});
  add_floats(&g, "f", 0, NULL);
  add_tensor(&g, "nan", MIX_FLOAT64, 0, NULL, numbers);
  add_tensor(&g, "huge", MIX_FLOAT64, 0, NULL, numbers + 1);
  add_tensor(&g, "limits", MIX_INT64, DIMS(2), limits);
  add_tensor(&g, "empty", MIX_INT64, DIMS(0), limits);
  const int64_t list[] = {any_integer(), any_integer(), any_integer(), any_integer()};
  add_ints(&g, "sizes", 1 + (int)mutate_below(4), list);
  add_node(&g, "Shape", mutate_below(2) ? "open" : "x", "part");
  char inputs[64] = "";
  for (size_t count = mutate_below(6), used = 0; count > 0; count--)
    used += (size_t)snprintf(inputs + used, sizeof inputs - used, used ? " %s" : "%s", ONE_OF(operands));
  add_attributes();
  add_node(&g, op, inputs, ONE_OF(outputs));
  add_node(&g, "Relu", "y", "z");
  add_output(&g, mutate_below(2) ? "y" : "z");
  return model_of(&g, opset);
}

/* A model, or an error: of each operator 24 nodes in sets that give axes and bounds in different places. */
static void any_operator_is_read_or_refused(void **state) {
  static const int64_t opsets[] = {9, 10, 12, 17, 21};
  (void)state;
  mutate_state = 4;
  for (const mix_import_operator *o = mix_import_operators; o->name; o++)
    for (int i = 0; i < 24; i++) {
      mix_message file = any_node(o->name, opsets[mutate_below(5)]);
      assert_false(file.failed);
      MIX_SCOPE {
        mix_onnx_file read;
        mix_model *model =
            mix_onnx_open_memory(&read, "any", file.data, file.size) ? mix_import_file(&read, NULL) : NULL;
        assert_true(!model == (mix_error() != MIX_OK));
        assert_true(mix_error() != MIX_INTERNAL_ERROR);
      }
      mix_error_clear();
      mix_message_free(&file);
    }
}

static void damaged_products(void **state) {
  (void)state;
  damage(graph_mlp(), 2000, 1);
}
static void damaged_convolutions(void **state) {
  (void)state;
  damage(graph_cnn(), 2000, 2);
}
static void damaged_words(void **state) {
  (void)state;
  damage(graph_words(), 2000, 3);
}

static void damaged_steps(void **state) {
  (void)state;
  damage(graph_steps(), 1000, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_products),
                                     cmocka_unit_test(damaged_convolutions), cmocka_unit_test(damaged_words),
                                     cmocka_unit_test(damaged_steps),
                                     cmocka_unit_test(any_operator_is_read_or_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
