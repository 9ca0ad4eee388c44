/* Updates from row-sparse gradients: against recorded runs of Keras (recorded/record_rows.py), in memory
 * traffic, and under loss scaling. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "support.h"
#include "support/records.h"
#include <jansson.h>
#include <mixtape/layers.h>
#include <mixtape/loss_scale.h>
#include <mixtape/regularizer.h>
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

static json_t *records(void) { return load_records("optim/recorded/rows.json", 0); }

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

/* ---- old values, skipped steps and errors ---- */

static const char *const every_rule[] = {"sgd",      "sgd:momentum=0.9", "adagrad", "adam", "rmsprop",
                                         "adadelta", "adamax",           "nadam",   "ftrl", "lion"};
enum { RULES = sizeof every_rule / sizeof *every_rule };

static updating updating_of(const char *rule) {
  return (updating){mix_optimizer_from_text(rule, NULL),
                    mix_variable_new(mix_fill(MIX_SHAPE(ROWS, WIDTH), 0.5, MIX_FLOAT32), .name = "table")};
}

static mix_list *batch_of(double first_value, int last_index) {
  const double values[] = {first_value, 1, -1, 0.5, 0.25, 2, 1, 1, 1, -3, 2, 1};
  const int32_t indices[] = {2, 4, 2, last_index};
  return mix_list_of(mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(COUNT, WIDTH)),
                     mix_tensor_from(indices, MIX_INT32, MIX_SHAPE(COUNT)));
}

/* The table, and the optimizer's variables of its shape. */
static int state_of(const updating *u, float *state) {
  mix_list *variables = mix_optimizer_variables(inner_of(u->optimizer));
  int count = 0;
  for (int i = -1; i < mix_list_count(variables); i++) {
    mix_variable *variable = i < 0 ? u->table : mix_list_get(variables, i);
    if (mix_shape_size(mix_variable_shape(variable)) != SIZE) continue;
    mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT32, state + SIZE * count++, SIZE);
  }
  assert_true(count <= MAX_STATE);
  return SIZE * count;
}

static mix_list *read_around_update(void *context, mix_list *arguments) {
  updating *u = context;
  mix_tensor *before = mix_identity(mix_variable_value(u->table));
  update_rows(u, arguments);
  return mix_list_of(before, mix_multiply(mix_variable_value(u->table), mix_scalar(2, MIX_FLOAT32)));
}

/* The value before the update and a use of the value after it, in one plan. */
static void old_and_new_values_are_read(void **state) {
  (void)state;
  for (int r = 0; r < RULES; r++)
    MIX_SCOPE {
      updating u = updating_of(every_rule[r]), eager = updating_of(every_rule[r]);
      mix_function *function = mix_function_new(read_around_update, &u, .name = "read");
      for (int step = 0; step < 3; step++) {
        float before[SIZE], after[SIZE], got[SIZE];
        mix_tensor_read(mix_variable_true_value(eager.table), MIX_FLOAT32, before, SIZE);
        update_rows(&eager, batch_of(1, 0));
        mix_tensor_read(mix_variable_true_value(eager.table), MIX_FLOAT32, after, SIZE);
        mix_list *results = mix_function_call(function, batch_of(1, 0));
        assert_no_error();
        mix_tensor_read(mix_list_get(results, 0), MIX_FLOAT32, got, SIZE);
        assert_memory_equal(got, before, sizeof got);
        mix_tensor_read(mix_list_get(results, 1), MIX_FLOAT32, got, SIZE);
        for (int i = 0; i < SIZE; i++) assert_true(got[i] == 2 * after[i]);
      }
    }
}

/* A dynamic loss scale skips the step of an infinity, and an index outside the table is an error: neither
 * changes a byte of table and slots. */
static void skipped_and_failed_steps_change_nothing(void **state) {
  (void)state;
  for (int captured = 0; captured < 2; captured++)
    for (int r = 0; r < RULES; r++)
      MIX_SCOPE {
        updating u = updating_of(every_rule[r]);
        float before[MAX_STATE * SIZE], after[MAX_STATE * SIZE];
        u.optimizer = mix_loss_scale_optimizer(u.optimizer, .initial_scale = 8);
        mix_function *function = mix_function_new(update_rows, &u, .name = "update");
        mix_list *batches[] = {batch_of(1, 0), batch_of(INFINITY, 0), batch_of(1, ROWS), batch_of(1, -1)};
        for (int b = 0; b < 4; b++) {
          captured ? mix_function_call(function, batches[b]) : update_rows(&u, batches[b]);
          state_of(&u, after); /* a device with a queue reports errors when a value is read */
          assert_int_equal(mix_error(), b < 2 ? MIX_OK : MIX_VALUE_ERROR);
          mix_error_clear();
          const int count = state_of(&u, b ? after : before);
          if (b) assert_memory_equal(after, before, sizeof *after * (size_t)count);
        }
        assert_true(scale_of(u.optimizer) == 4);
      }
}

/* A constraint sees all rows. OptimizerV2 refuses it. */
static void constraints_see_the_whole_table(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  for (int g = 0; g < 3; g++)
    MIX_SCOPE {
      mix_set_semantics(generations[g]);
      mix_layer *embedding =
          mix_embedding(.input_dim = ROWS, .output_dim = WIDTH, .embeddings_initializer = "ones",
                        .embeddings_constraint = mix_constraint_new(.constraint = "non_neg"));
      mix_layer_build(embedding, MIX_SHAPE(1, 1));
      updating u = {mix_optimizer_from_text("sgd:learning_rate=1", NULL),
                    mix_list_get(mix_layer_trainable_weights(embedding), 0)};
      update_rows(&u, batch_of(1, 0));
      if (g == 2) {
        ASSERT_ERROR(MIX_RUNTIME_ERROR);
        continue;
      }
      assert_no_error();
      /* 1 minus the sums of the rows, then at least 0 */
      ASSERT_VALUES(u.table, 0, 4, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0.5, 0.75, 0, 1, 1, 1);
    }
}

/* ---- what a step touches ---- */

enum { FEW = 1000, MANY = 1000000, DEPTH = 2, TOKENS = 24 };

typedef struct trainer {
  const char *optimizer, *policy;
  mix_layer *embedding;
  mix_optimizer *object;
} trainer;

/* tokens, upstream gradient -> loss */
static mix_list *embedding_step(void *context, mix_list *arguments) {
  trainer *t = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *vectors = mix_cast(mix_call(t->embedding, mix_list_get(arguments, 0)), MIX_FLOAT32);
  mix_tensor *loss = mix_reduce_sum(mix_multiply(vectors, mix_list_get(arguments, 1)), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_optimizer_minimize(t->object, loss, tape, mix_layer_trainable_weights(t->embedding));
  return mix_list_of(loss);
}

static mix_plan_report step_report(trainer *t, int64_t rows) {
  int32_t tokens[TOKENS];
  mix_plan_report report;
  for (int i = 0; i < TOKENS; i++) tokens[i] = (i * 7919) % 40; /* some occur twice */
  t->embedding = mix_embedding(.input_dim = rows, .output_dim = DEPTH, .dtype = t->policy);
  t->object = mix_optimizer_from_text(t->optimizer, NULL);
  if (!strcmp(t->policy, "mixed_float16")) t->object = mix_loss_scale_optimizer(t->object);
  mix_function *function = mix_function_new(embedding_step, t, .name = "step");
  mix_list *batch = mix_list_of(mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(TOKENS)),
                                mix_fill(MIX_SHAPE(TOKENS, DEPTH), 0.5, MIX_FLOAT32));
  mix_function_call(function, batch);
  assert_no_error();
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  return report;
}

/* The plans of a table of a thousand rows and of one of a million move the same bytes. */
static void touched_rows_alone_are_moved(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd", "adagrad", "sgd:clipnorm=1", "adagrad:clipvalue=0.1",
                                           "sgd:global_clipnorm=1"};
  static const char *const generations[] = {"tf_keras", "experimental", "keras3"};
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  for (int g = 0; g < 3; g++)
    for (int o = 0; o < 5; o++)
      for (int p = 0; p < 3; p++)
        MIX_SCOPE {
          if (g > 0 && (o > 1 || p > 0)) continue;
          mix_set_semantics(generations[g]);
          trainer t = {optimizers[o], policies[p]};
          const mix_plan_report few = step_report(&t, FEW), many = step_report(&t, MANY);
          if (few.moved_bytes != many.moved_bytes || few.arena_bytes != many.arena_bytes ||
              few.workspace_bytes != many.workspace_bytes || few.result_bytes != many.result_bytes)
            fail_msg("%s %s %s: %zu bytes moved, arena %zu; with %d rows %zu and %zu", generations[g],
                     optimizers[o], policies[p], many.moved_bytes, many.arena_bytes, FEW, few.moved_bytes,
                     few.arena_bytes);
        }
}

/* Momenta and averages of all rows move, in place: nothing of the table's size is in the arena. */
static void idle_rows_decay_in_place(void **state) {
  (void)state;
  static const char *const optimizers[] = {"adam",
                                           "adam:amsgrad=true",
                                           "rmsprop",
                                           "rmsprop:momentum=0.5",
                                           "sgd:momentum=0.9",
                                           "sgd:momentum=0.9,nesterov=true",
                                           "adadelta",
                                           "adamax",
                                           "nadam",
                                           "ftrl",
                                           "lion",
                                           "adamw",
                                           "sgd:weight_decay=0.1",
                                           "adagrad:use_ema=true"};
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++)
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++)
      for (int p = 0; p < 2; p++)
        MIX_SCOPE {
          mix_set_semantics(generations[g]);
          trainer t = {optimizers[o], p ? "mixed_float16" : "float32"};
          const mix_plan_report few = step_report(&t, FEW), many = step_report(&t, 10 * FEW);
          if (few.arena_bytes != many.arena_bytes || few.workspace_bytes != many.workspace_bytes)
            fail_msg("%s %s: arena of %zu and %zu bytes", generations[g], optimizers[o], few.arena_bytes,
                     many.arena_bytes);
        }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(optimizers_update_rows_as_recorded),
      TEST(old_and_new_values_are_read),
      TEST(skipped_and_failed_steps_change_nothing),
      TEST(constraints_see_the_whole_table),
      TEST(touched_rows_alone_are_moved),
      TEST(idle_rows_decay_in_place),
  };
  return cmocka_run_group_tests_name("row_updates", tests, NULL, NULL);
}
