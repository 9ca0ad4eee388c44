/* Updates from row-sparse gradients: against recorded runs of Keras (recorded/record_rows.py), in memory
 * traffic, and under loss scaling. */
#include "support.h"
#include <jansson.h>
#include <mixtape/layers.h>
#include <mixtape/loss_scale.h>
#include <mixtape/tape.h>
#include <stdlib.h>

/* ---- recorded runs ---- */

enum { ROWS = 6, WIDTH = 3, SIZE = ROWS * WIDTH, COUNT = 4, STEPS = 4, MAX_STATE = 6 };

/* At most 16 rounded operations an element and step, each off by half a unit in the last place of the
 * largest number. */
static double bound_of(const double *recorded) {
  double largest = 0;
  for (int i = 0; i < SIZE; i++) largest = fmax(largest, fabs(recorded[i]));
  return STEPS * 16 * largest * 0x1p-24;
}

static json_t *records(void) {
  char path[4096];
  json_error_t error;
  snprintf(path, sizeof path, "%s/optim/recorded/rows.json", getenv("MIXTAPE_TESTS_DIR"));
  json_t *json = json_load_file(path, 0, &error);
  if (!json) fail_msg("%s: %s", path, error.text);
  return json;
}

static void read_numbers(const json_t *list, double *numbers, int count) {
  assert_int_equal(json_array_size(list), count);
  for (int i = 0; i < count; i++) numbers[i] = json_number_value(json_array_get(list, (size_t)i));
}

typedef struct updating {
  mix_optimizer *optimizer;
  mix_variable *table;
} updating;

static mix_optimizer *inner_of(mix_optimizer *optimizer) {
  return mix_optimizer_inner(optimizer) ? mix_optimizer_inner(optimizer) : optimizer;
}

/* values, indices -> one update */
static mix_list *update_rows(void *context, mix_list *arguments) {
  updating *u = context;
  const int64_t rows = mix_shape_size(mix_variable_shape(u->table)) / WIDTH;
  mix_tensor *gradient = mix_rows(mix_list_get(arguments, 0), mix_list_get(arguments, 1), rows);
  mix_optimizer_apply(u->optimizer, mix_list_of(gradient), mix_list_of(u->table));
  return mix_list_new(0, NULL);
}

/* With a loss scale the gradients are scaled, and those of the third step not finite. */
static mix_list *arguments_of(const json_t *all, int step, double scale) {
  double values[COUNT * WIDTH], indices[COUNT];
  read_numbers(json_array_get(json_object_get(all, "values"), (size_t)step), values, COUNT * WIDTH);
  read_numbers(json_array_get(json_object_get(all, "indices"), (size_t)step), indices, COUNT);
  for (int i = 0; scale && i < COUNT * WIDTH; i++) values[i] *= scale;
  if (scale && step == 2) values[2 * WIDTH] = INFINITY;
  return mix_list_of(mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(COUNT, WIDTH)),
                     mix_tensor_from_doubles(indices, MIX_INT32, MIX_SHAPE(COUNT)));
}

static void compare(const char *name, mix_variable *variable, const json_t *recorded) {
  double expected[SIZE], got[SIZE];
  read_numbers(recorded, expected, SIZE);
  mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT64, got, SIZE);
  for (int i = 0; i < SIZE; i++)
    if (!(fabs(got[i] - expected[i]) <= bound_of(expected)))
      fail_msg("%s: %s[%d, %d] is %.9g; recorded %.9g", name, mix_variable_name(variable), i / WIDTH,
               i % WIDTH, got[i], expected[i]);
}

/* The table and, in order, the variables of its shape. Nothing reads the slot of SGD without momentum: it
 * keeps former steps in rows that the last one does not touch. */
static void compare_state(const char *name, updating *u, const json_t *item) {
  const json_t *state = json_object_get(item, "state"), *config = json_object_get(item, "config");
  const json_t *momentum = json_object_get(config, "momentum");
  const bool unread = !strcmp(json_string_value(json_object_get(item, "class_name")), "SGD") &&
                      json_number_value(momentum) == 0;
  mix_list *variables = mix_optimizer_variables(inner_of(u->optimizer));
  size_t next = 1;
  compare(name, u->table, json_array_get(state, 0));
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    if (mix_shape_size(mix_variable_shape(variable)) != SIZE) continue;
    const bool slot =
        !strstr(mix_variable_name(variable), "average") && !strstr(mix_variable_name(variable), "accum");
    if (!(unread && slot)) compare(name, variable, json_array_get(state, next));
    next++;
  }
  assert_int_equal(next, json_array_size(state));
}

static void replay(const json_t *all, const json_t *item, bool captured) {
  char name[128];
  double table[SIZE];
  const char *generation = json_string_value(json_object_get(item, "generation"));
  const double scale = json_number_value(json_object_get(item, "loss_scale"));
  snprintf(name, sizeof name, "%s %s%s%s", generation, json_string_value(json_object_get(item, "name")),
           scale ? " scaled" : "", captured ? " captured" : "");
  mix_set_semantics(generation);
  char *config = json_dumps(json_object_get(item, "config"), 0);
  read_numbers(json_object_get(all, "table"), table, SIZE);
  updating u = {
      mix_optimizer_from_config(json_string_value(json_object_get(item, "class_name")), config,
                                mix_semantics_named(generation)),
      mix_variable_new(mix_tensor_from_doubles(table, MIX_FLOAT32, MIX_SHAPE(ROWS, WIDTH)), .name = "table")};
  free(config);
  if (scale) u.optimizer = mix_loss_scale_optimizer(u.optimizer, .initial_scale = scale);
  mix_function *function = captured ? mix_function_new(update_rows, &u, .name = "update") : NULL;
  for (int step = 0; step < STEPS; step++)
    if (captured)
      mix_function_call(function, arguments_of(all, step, scale));
    else
      update_rows(&u, arguments_of(all, step, scale));
  if (mix_error()) fail_msg("%s: %s", name, mix_error_message());
  compare_state(name, &u, item);
}

/* rows O04, A09 and section 12.2 of the specification name the forms; the numbers are Keras's. */
static void optimizers_update_rows_as_recorded(void **state) {
  (void)state;
  json_t *all = records(), *item;
  size_t i;
  json_array_foreach(json_object_get(all, "cases"), i, item) for (int captured = 0; captured < 2; captured++)
      MIX_SCOPE {
    replay(all, item, captured);
  }
  assert_true(i > 60);
  json_decref(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(optimizers_update_rows_as_recorded),
  };
  return cmocka_run_group_tests_name("row_updates", tests, NULL, NULL);
}
