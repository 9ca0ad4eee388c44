/* The order of layers and weights in models, as recorded by recorded/record_orders.py from tf_keras and
 * Keras 3. The models here are those of that file. */
#include "model/support.h"

typedef struct recorded_order {
  const char *model, *semantics; /* semantics NULL: both generations */
  const char *layers, *weights, *trainable, *others;
} recorded_order;
#include "recorded/orders.inc"

/* ---- the models ---- */

static mix_layer *dense(const char *name) { return mix_dense(.units = 2, .name = name); }
static mix_layer *batch_norm(const char *name) { return mix_batch_normalization(.name = name); }
static mix_tensor *entry(const char *name) { return mix_input(.shape = MIX_SHAPE(2), .name = name); }
static mix_tensor *sum_of(mix_tensor *a, mix_tensor *b) {
  return mix_call(mix_add_layer(.name = "sum"), mix_list_of(a, b));
}

static mix_list *stack(void) {
  return mix_list_of(dense("i1"), batch_norm("i2"), mix_layer_normalization(.name = "i3"), dense("i4"),
                     batch_norm("i5"));
}
static mix_model *chain(const char *name) {
  (void)name;
  mix_tensor *x = entry("ix"), *y = x;
  mix_list *layers = stack();
  for (int i = 0; i < mix_list_count(layers); i++) y = mix_call(mix_list_get(layers, i), y);
  return mix_model_new(x, y, .name = "i");
}
static mix_model *sequential(const char *name) {
  (void)name;
  mix_model *model = mix_sequential(stack(), .name = "i");
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 2));
  return model;
}
static mix_model *towers(const char *name) {
  mix_tensor *x = entry("x");
  mix_tensor *a = mix_call(dense("a1"), x), *b = mix_call(batch_norm("b1"), x);
  b = mix_call(dense("b2"), b);
  a = mix_call(batch_norm("a2"), a);
  b = mix_call(dense("b3"), b);
  return mix_model_new(x, strstr(name, "ab") ? sum_of(a, b) : sum_of(b, a));
}
static mix_model *outputs(const char *name) {
  (void)name;
  mix_tensor *x = entry("x"), *y = entry("y"), *p = mix_call(dense("p"), x);
  return mix_model_new(mix_list_of(x, y), mix_list_of(mix_call(dense("q"), y), mix_call(batch_norm("r"), p)));
}
static mix_model *unused(const char *name) {
  (void)name;
  mix_tensor *x = entry("x"), *y = entry("y"), *z = entry("z");
  return mix_model_new(mix_list_of(z, x, y), mix_call(dense("p"), x));
}
static mix_model *shared(const char *name) {
  (void)name;
  mix_tensor *x = entry("x"), *u = mix_call(dense("u"), x);
  mix_layer *s = dense("s");
  return mix_model_new(x, sum_of(u, mix_call(s, mix_call(batch_norm("t"), mix_call(s, x)))));
}
static mix_model *shared_depths(const char *name) {
  mix_tensor *x = entry("x"), *y = entry("y");
  mix_layer *s = dense("s");
  mix_tensor *near = mix_call(s, mix_call(dense("p"), x));
  mix_tensor *far = mix_call(s, mix_call(dense("q2"), mix_call(dense("q1"), y)));
  far = mix_call(dense("r2"), mix_call(batch_norm("r1"), far));
  return mix_model_new(mix_list_of(x, y),
                       strstr(name, "short") ? mix_list_of(near, far) : mix_list_of(far, near));
}
static mix_model *around(mix_layer *inner) {
  mix_tensor *x = entry("x"), *y = mix_call(dense("o1"), x);
  return mix_model_new(x, mix_call(batch_norm("o2"), mix_call(inner, y)));
}
static mix_model *nested(const char *name) {
  mix_model *inner = strstr(name, "sequential") ? sequential(name) : chain(name);
  mix_model *model = around(mix_model_layer(inner));
  if (!strcmp(name, "frozen layer")) mix_layer_set_trainable(mix_model_get_layer(model, "o2"), false);
  if (!strcmp(name, "frozen nested")) mix_layer_set_trainable(mix_model_layer(inner), false);
  if (!strcmp(name, "frozen model")) mix_layer_set_trainable(mix_model_layer(model), false);
  return model;
}

static mix_list *block_call(mix_layer *layer, const mix_call_args *args) {
  mix_list *inner = mix_layer_layers(layer);
  mix_tensor *x = mix_call_input(args, 0);
  for (int i = 0; i < mix_list_count(inner); i++) x = mix_call(mix_list_get(inner, i), x);
  return mix_list_of(x);
}
static mix_model *block(const char *name) {
  static const mix_layer_class class = {.size = sizeof class, .name = "Block", .call = block_call};
  mix_layer *layer = mix_layer_new(&class, .name = "c");
  mix_layer_add_layer(layer, dense("c1"));
  mix_layer_add_layer(layer, batch_norm("c2"));
  mix_layer_add_layer(layer, batch_norm("c3"));
  if (strstr(name, "frozen")) mix_layer_set_trainable(layer, false);
  return around(layer);
}
static mix_model *part(const char *name) {
  (void)name;
  mix_tensor *h = mix_call(dense("p"), entry("x"));
  return mix_model_new(h, mix_call(batch_norm("q"), h));
}

static const struct {
  const char *name;
  mix_model *(*make)(const char *name);
} models[] = {{"sequential", sequential},
              {"chain", chain},
              {"towers ab", towers},
              {"towers ba", towers},
              {"outputs", outputs},
              {"unused", unused},
              {"shared", shared},
              {"shared short first", shared_depths},
              {"shared long first", shared_depths},
              {"nested chain", nested},
              {"nested sequential", nested},
              {"frozen layer", nested},
              {"frozen nested", nested},
              {"frozen model", nested},
              {"block", block},
              {"frozen block", block},
              {"part", part}};

static mix_model *model_named(const char *name) {
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    if (!strcmp(models[i].name, name)) return models[i].make(name);
  fail_msg("no model is named %s", name);
  return NULL;
}

/* ---- the comparison ---- */

/* The last two parts of a path: "dense/kernel" of "model/dense/kernel". */
static const char *last_two(const char *path) {
  const char *start = path + strlen(path);
  for (int slashes = 0; start > path && (slashes += start[-1] == '/') < 2;) start--;
  return start;
}
static const char *weight_name(void *weight) { return last_two(mix_variable_name(weight)); }
static const char *layer_name(void *layer) { return mix_layer_name(layer); }

static void expect_names(mix_list *items, const char *(*name_of)(void *), const char *expected,
                         const recorded_order *row, const char *what) {
  char names[1024] = "";
  size_t used = 0;
  for (int i = 0; i < mix_list_count(items) && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "",
                             name_of(mix_list_get(items, i)));
  if (strcmp(names, expected) != 0)
    fail_msg("%s, %s: got %s, Keras has %s", row->model, what, names, expected);
}

static void compare(const recorded_order *row, const char *semantics) {
  mix_set_semantics(semantics);
  mix_model *model = model_named(row->model);
  assert_no_error();
  expect_names(mix_model_layers(model), layer_name, row->layers, row, "layers");
  expect_names(mix_model_weights(model), weight_name, row->weights, row, "weights");
  expect_names(mix_model_trainable_variables(model), weight_name, row->trainable, row, "trainable weights");
  expect_names(mix_model_non_trainable_variables(model), weight_name, row->others, row, "other weights");
}

static void orders_are_those_of_keras(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (size_t r = 0; r < sizeof orders / sizeof *orders; r++)
    for (int g = 0; g < 2; g++)
      if (!orders[r].semantics || !strcmp(orders[r].semantics, generations[g]))
        compare(&orders[r], generations[g]);
}

/* A list of values in Keras's order goes to the weights of the same names: each value says its place. */
static void values_in_kerass_order_fit(void **state) {
  (void)state;
  mix_model *model = model_named("towers ab");
  mix_list *values = mix_list_new(0, NULL), *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    mix_list_append(values, mix_fill(mix_variable_shape(mix_list_get(weights, i)), i + 1, F32));
  assert_int_equal(mix_model_set_weights(model, values), MIX_OK);
  static const struct {
    const char *layer;
    int first; /* the place of its first weight in the recorded list, from 1 */
  } rows[] = {{"b1", 1}, {"a1", 5}, {"b2", 7}, {"a2", 9}, {"b3", 13}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_true(at(mix_list_get(mix_layer_get_weights(mix_model_get_layer(model, rows[i].layer)), 0), 0) ==
                rows[i].first);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(orders_are_those_of_keras), TEST(values_in_kerass_order_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
