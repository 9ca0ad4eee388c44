/* Several models in one checkpoint: a generator and a critic, on disk and in memory. */
#include "saving/resume_support.h"

#define FOLDER in_folder("models")

static mix_model *model_named(const char *name, int64_t units, const char *optimizer) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dropout(.rate = 0.25), mix_call(mix_dense(.units = units), x));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 1), y), .name = name);
  if (optimizer) mix_model_compile(model, .loss = "mse", .optimizer_name = optimizer);
  assert_no_error();
  return model;
}

static double step_of(mix_model *model, double value) {
  double loss = 0;
  MIX_SCOPE {
    mix_tensor *x = mix_fill(MIX_SHAPE(3, 4), value, F32), *y = mix_fill(MIX_SHAPE(3, 1), 1, F32);
    mix_logs *logs = mix_model_train_on_batch(model, x, y);
    assert_no_error();
    loss = mix_logs_get(logs, "loss");
  }
  return loss;
}

typedef struct pair {
  mix_model *generator, *critic;
} pair;
static pair pair_of(uint64_t seed) {
  mix_set_seed(seed);
  return (pair){model_named("generator", 5, "adam"), model_named("critic", 6, "rmsprop")};
}
static mix_checkpoint *checkpoint_of(pair p) {
  return mix_checkpoint_new(FOLDER, .models = mix_list_of(p.generator, p.critic));
}
/* The losses of the next steps tell weights, slots, counters and the dropout's states. */
static void go_on(pair p, double losses[6]) {
  for (int i = 0; i < 6; i += 2) {
    losses[i] = step_of(p.generator, 0.5 + i);
    losses[i + 1] = step_of(p.critic, 0.25 + i);
  }
}

static void both_go_on_with_the_same_bits(void **state) {
  (void)state;
  double straight[6], resumed[6];
  forget("models");
  pair p = pair_of(1), q = pair_of(2), r = pair_of(3);
  go_on(p, resumed);
  mix_tensor *bytes = NULL;
  MIX_SCOPE { /* at its end the folder is unlocked */
    mix_checkpoint *checkpoint = checkpoint_of(p);
    bytes = mix_scope_leave(mix_checkpoint_to_memory(checkpoint, 3, NULL));
    assert_int_equal(mix_checkpoint_save(checkpoint, 3, NULL), MIX_OK);
  }
  go_on(p, straight);
  assert_int_equal(mix_checkpoint_restore(checkpoint_of(q), NULL), 3);
  go_on(q, resumed);
  assert_memory_equal(straight, resumed, sizeof straight);
  assert_int_equal(mix_checkpoint_from_memory(
                       mix_checkpoint_new(NULL, .models = mix_list_of(r.generator, r.critic)),
                       mix_tensor_data(bytes), (size_t)mix_shape_size(mix_tensor_shape(bytes)), NULL),
                   3);
  assert_no_error();
  go_on(r, resumed);
  assert_memory_equal(straight, resumed, sizeof straight);
}

/* Optimizers of a loop of one's own, beside one that a model was compiled with. */
static void optimizers_are_given_beside(void **state) {
  (void)state;
  pair p = {model_named("generator", 5, NULL), model_named("critic", 6, "sgd")};
  mix_optimizer *own = mix_adam(.learning_rate = 0.5);
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .models = mix_list_of(p.generator, p.critic),
                                                  .optimizers = mix_list_of(own, NULL));
  mix_tensor *bytes = mix_checkpoint_to_memory(checkpoint, 1, NULL);
  assert_non_null(bytes);
  const size_t size = (size_t)mix_shape_size(mix_tensor_shape(bytes));
  assert_int_equal(mix_optimizer_set_learning_rate(own, 0.125), MIX_OK);
  assert_int_equal(mix_checkpoint_from_memory(checkpoint, mix_tensor_data(bytes), size, NULL), 1);
  assert_true(mix_optimizer_learning_rate(own) == 0.5);
  checkpoint = mix_checkpoint_new(NULL, .models = mix_list_of(p.generator, p.critic));
  assert_int_equal(mix_checkpoint_from_memory(checkpoint, mix_tensor_data(bytes), size, NULL), -1);
  assert_error(MIX_VALUE_ERROR,
               "model 1 of 2 ('generator'): checkpoint_from_memory: the optimizer is none here");
}

/* ---- lists that differ ---- */

static mix_tensor *saved; /* of a generator and a critic */

static int64_t restore(mix_model *model, mix_list *models, bool force) {
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = model, .models = models, .force = force);
  assert_non_null(checkpoint);
  return mix_checkpoint_from_memory(checkpoint, mix_tensor_data(saved),
                                    (size_t)mix_shape_size(mix_tensor_shape(saved)), NULL);
}

static void other_lists_are_refused(void **state) {
  (void)state;
  pair p = pair_of(1);
  saved = mix_checkpoint_to_memory(mix_checkpoint_new(NULL, .models = mix_list_of(p.generator, p.critic)), 2,
                                   NULL);
  assert_non_null(saved);
  const double before = weight_at(p.generator, 0, 0);
  assert_int_equal(restore(NULL, mix_list_of(p.critic, p.generator), false), -1);
  assert_error(MIX_VALUE_ERROR, "2 models here ('critic', 'generator'), 2 in the checkpoint ('generator', "
                                "'critic'); give the models that it was made with, in the same order");
  assert_int_equal(restore(NULL, mix_list_of(p.generator), false), -1);
  assert_error(MIX_VALUE_ERROR, "1 models here ('generator'), 2 in the checkpoint");
  assert_int_equal(restore(NULL, mix_list_of(p.generator, p.critic, p.critic), false), -1);
  assert_error(MIX_VALUE_ERROR, "3 models here");
  assert_int_equal(restore(p.generator, NULL, false), -1);
  assert_error(MIX_VALUE_ERROR, "2 models in the checkpoint; restore it with .models");
  /* Another width in the second: which model, which weight. Nothing of the first is assigned. */
  mix_model *wide = model_named("critic", 7, "rmsprop");
  mix_variable_assign(mix_list_get(mix_model_weights(p.generator), 0), mix_fill(MIX_SHAPE(4, 5), 9, F32));
  assert_int_equal(restore(NULL, mix_list_of(p.generator, wide), false), -1);
  char message[1024];
  assert_int_equal(mix_error_take(message, sizeof message), MIX_VALUE_ERROR);
  assert_non_null(strstr(message, "model 2 of 2 ('critic'): "));
  assert_non_null(strstr(message, "/kernel' is float32 (4, 7), in the checkpoint ("));
  assert_true(weight_at(p.generator, 0, 0) == 9);
  assert_int_equal(restore(NULL, mix_list_of(p.generator, p.critic), false), 2);
  assert_true(weight_at(p.generator, 0, 0) == before);
  /* One model's checkpoint, and other names of the same layers. */
  saved = mix_checkpoint_to_memory(mix_checkpoint_new(NULL, .model = p.critic), 5, NULL);
  assert_int_equal(restore(NULL, mix_list_of(p.critic, p.generator), false), -1);
  assert_error(MIX_VALUE_ERROR, "2 models here, one in the checkpoint; restore it with .model");
}

static void new_names_say_nothing(void **state) {
  (void)state;
  pair p = pair_of(1);
  saved = mix_checkpoint_to_memory(mix_checkpoint_new(NULL, .models = mix_list_of(p.generator, p.critic)), 2,
                                   NULL);
  mix_list *anew = mix_list_of(model_named("first", 5, "adam"), model_named("second", 6, "rmsprop"));
  assert_int_equal(restore(NULL, anew, false), 2);
  assert_no_error();
}

/* By force another optimizer of one model begins anew; the other model has all of its state. */
static void force_is_for_each_model(void **state) {
  (void)state;
  pair p = pair_of(1), q;
  double losses[6];
  go_on(p, losses);
  saved = mix_checkpoint_to_memory(mix_checkpoint_new(NULL, .models = mix_list_of(p.generator, p.critic)), 2,
                                   NULL);
  q = (pair){model_named("generator", 5, "adam"), model_named("critic", 6, "adam:learning_rate=0.25")};
  assert_int_equal(restore(NULL, mix_list_of(q.generator, q.critic), false), -1);
  assert_error(MIX_VALUE_ERROR,
               "model 2 of 2 ('critic'): checkpoint_from_memory: the optimizer is Adam here, "
               "RMSprop in the checkpoint");
  assert_int_equal(restore(NULL, mix_list_of(q.generator, q.critic), true), 2);
  assert_no_error();
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(q.generator)), 3);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(q.critic)), 0);
  assert_true(mix_optimizer_learning_rate(mix_model_optimizer(q.critic)) == 0.25);
  assert_true(weight_at(q.critic, 0, 0) == weight_at(p.critic, 0, 0));
}

static void bad_options_are_refused(void **state) {
  (void)state;
  pair p = pair_of(1);
  mix_list *both = mix_list_of(p.generator, p.critic);
  mix_optimizer *own = mix_sgd();
  assert_null(mix_checkpoint_new(NULL, .model = p.critic, .models = both));
  assert_error(MIX_VALUE_ERROR, "both .model and .models");
  assert_null(mix_checkpoint_new(NULL, .models = both, .optimizer = own));
  assert_error(MIX_VALUE_ERROR, "give .optimizers, one for each model");
  assert_null(mix_checkpoint_new(NULL, .models = both, .optimizers = mix_list_of(own)));
  assert_error(MIX_VALUE_ERROR, "1 optimizers and 2 models");
  assert_null(mix_checkpoint_new(NULL, .optimizers = mix_list_of(own)));
  assert_error(MIX_VALUE_ERROR, "1 optimizers and 0 models");
  assert_null(mix_checkpoint_new(NULL, .models = mix_list_new(0, NULL)));
  assert_error(MIX_VALUE_ERROR, "empty list");
  assert_null(mix_checkpoint_new(NULL, .models = mix_list_of(p.critic, own)));
  assert_error(MIX_TYPE_ERROR, "expected a model");
  assert_null(mix_checkpoint_new(NULL, .models = mix_list_of(p.critic, NULL)));
  assert_error(MIX_TYPE_ERROR, "expected a model");
  assert_null(mix_checkpoint_new(NULL, .models = both, .optimizers = mix_list_of(own, p.critic)));
  assert_error(MIX_TYPE_ERROR, "expected an optimizer");
  mix_model *unbuilt = mix_sequential(mix_list_of(mix_dense(.units = 1)));
  assert_null(mix_checkpoint_new(NULL, .models = mix_list_of(p.critic, unbuilt)));
  assert_error(MIX_VALUE_ERROR, "mix_model_build");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(both_go_on_with_the_same_bits), TEST(optimizers_are_given_beside),
                                     TEST(other_lists_are_refused),       TEST(new_names_say_nothing),
                                     TEST(force_is_for_each_model),       TEST(bad_options_are_refused)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
