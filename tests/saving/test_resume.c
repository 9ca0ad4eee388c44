/* Resuming from any step gives the bits of a run without a stop: weights, slots, loss scale, history, step
 * records. */
/* Holds docs/NUMERICS.md: The same bits again. */
#include "saving/resume_support.h"

#define SMALL .rows = 22, .batch_size = 5, .epochs = 3

static void arrays_and_float32(void **state) {
  (void)state;
  resume_from_every_step(&(run_kind){SMALL, .dropout = true, .normalization = true, .validation = true}, 1);
}
static void rows_in_order_with_class_weights(void **state) {
  (void)state;
  resume_from_every_step(&(run_kind){SMALL, .no_shuffle = true, .class_weights = true, .frozen = true}, 1);
}
/* The scale starts so high that steps are skipped, and grows every three good steps. */
static void mixed_float16_with_skips(void **state) {
  (void)state;
  static const char *const semantics[] = {"tf_keras", "keras3"};
  for (int i = 0; i < 2; i++)
    resume_from_every_step(&(run_kind){SMALL, .policy = "mixed_float16", .semantics = semantics[i],
                                       .initial_scale = 0x1p22, .dropout = true},
                           1);
}
static void the_scale_of_an_experimental_policy(void **state) {
  (void)state;
  resume_from_every_step(
      &(run_kind){SMALL, .policy = "mixed_float16", .semantics = "experimental", .optimizer = "adam"}, 2);
}
static void other_policies(void **state) {
  (void)state;
  static const char *const policies[] = {"mixed_bfloat16", "bfloat16", "float16", "float64"};
  for (int i = 0; i < 4; i++)
    resume_from_every_step(
        &(run_kind){SMALL, .policy = policies[i], .optimizer = "sgd:learning_rate=0.01,momentum=0.9"}, 4);
}
static void every_optimizer(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd:momentum=0.9,nesterov=true",
                                           "rmsprop:centered=true,momentum=0.5",
                                           "adam:amsgrad=true,clipnorm=0.5",
                                           "adamw:use_ema=true,ema_overwrite_frequency=4",
                                           "adamax",
                                           "nadam",
                                           "adagrad",
                                           "adadelta",
                                           "ftrl",
                                           "lion",
                                           "adafactor"};
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
    resume_from_every_step(&(run_kind){SMALL, .optimizer = optimizers[i]}, 4);
  static const char *const keras3[] = {"lamb", "muon", "schedulefreeadamw",
                                       "sgd:gradient_accumulation_steps=3,momentum=0.9", "adam:use_ema=true"};
  for (size_t i = 0; i < sizeof keras3 / sizeof *keras3; i++)
    resume_from_every_step(&(run_kind){SMALL, .optimizer = keras3[i], .semantics = "keras3"}, 3);
}
static void state_in_bfloat16(void **state) {
  (void)state;
  static const struct {
    const char *policy, *optimizer;
  } rows[] = {{"mixed_bfloat16", "adam:state=bfloat16-stochastic"},
              {"mixed_float16", "rmsprop:state=bfloat16-stochastic"},
              {"bfloat16", "adamw:state=bfloat16-stochastic"},
              {"bfloat16", "adam:state=bfloat16-kahan"},
              {"bfloat16", "nadam:state=bfloat16"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    resume_from_every_step(
        &(run_kind){SMALL, .optimizer = rows[i].optimizer, .policy = rows[i].policy, .semantics = "keras3"},
        3);
}
static void callbacks_resume(void **state) {
  (void)state;
  resume_from_every_step(
      &(run_kind){.rows = 22, .batch_size = 5, .epochs = 9, .callbacks = true, .validation = true}, 1);
  resume_from_every_step(
      &(run_kind){.rows = 22, .batch_size = 5, .epochs = 9, .callbacks = true, .semantics = "keras3"}, 3);
}

/* ---- data sets ---- */

static mix_list *doubled(void *context, mix_list *element) {
  (void)context;
  mix_tensor *x = mix_list_get(element, 0);
  return mix_list_of(mix_add(x, x), mix_list_get(element, 1));
}
static mix_dataset *shuffled_forever(mix_dataset *rows) {
  return mix_dataset_batch(mix_dataset_repeat(mix_dataset_shuffle(rows, 9), -1), 5);
}
static mix_dataset *mapped_and_prefetched(mix_dataset *rows) {
  mix_dataset *mapped = mix_dataset_map(mix_dataset_shuffle(rows, 30), doubled, .num_parallel_calls = 2);
  return mix_dataset_prefetch(mix_dataset_batch(mapped, 5), 2);
}
static mix_dataset *cached(mix_dataset *rows) {
  return mix_dataset_batch(
      mix_dataset_shuffle(mix_dataset_cache(mix_dataset_map(mix_dataset_shuffle(rows, 4), doubled)), 6), 5);
}
static mix_dataset *two_in_turn(mix_dataset *rows) {
  return mix_dataset_batch(mix_dataset_concatenate(mix_dataset_shuffle(mix_dataset_take(rows, 12), 12),
                                                   mix_dataset_skip(rows, 14)),
                           5);
}
/* States that batches leave to the next ones, and masks of dropout. */
static void stateful_layers_resume(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16"};
  for (int i = 0; i < 2; i++)
    resume_from_every_step(&(const run_kind){.rows = 20,
                                             .batch_size = 5,
                                             .epochs = 2,
                                             .stateful = true,
                                             .policy = policies[i],
                                             .semantics = i ? "keras3" : "tf_keras"},
                           1);
}

static void data_sets(void **state) {
  (void)state;
  resume_from_every_step(&(run_kind){SMALL, .dataset = true, .validation = true}, 1);
  static mix_dataset *(*const pipelines[])(mix_dataset *) = {mapped_and_prefetched, cached, two_in_turn};
  for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
    resume_from_every_step(&(run_kind){SMALL, .dataset = true, .pipeline = pipelines[i]}, 2);
}
static void data_sets_across_epochs(void **state) {
  (void)state;
  for (int steps = 2; steps < 4; steps++) { /* of arrays of five batches */
    resume_from_every_step(&(run_kind){SMALL, .steps_per_epoch = steps}, 1);
    resume_from_every_step(&(run_kind){SMALL, .steps_per_epoch = steps, .semantics = "keras3"}, 1);
  }
  resume_from_every_step(
      &(run_kind){SMALL, .dataset = true, .pipeline = shuffled_forever, .steps_per_epoch = 3}, 1);
  resume_from_every_step(&(run_kind){SMALL, .dataset = true, .steps_per_epoch = 2, .semantics = "keras3"}, 1);
  /* The data run out: training stops. */
  resume_from_every_step(&(run_kind){SMALL, .dataset = true, .steps_per_epoch = 3}, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(arrays_and_float32, setup, teardown),
      cmocka_unit_test_setup_teardown(rows_in_order_with_class_weights, setup, teardown),
      cmocka_unit_test_setup_teardown(mixed_float16_with_skips, setup, teardown),
      cmocka_unit_test_setup_teardown(the_scale_of_an_experimental_policy, setup, teardown),
      cmocka_unit_test_setup_teardown(other_policies, setup, teardown),
      cmocka_unit_test_setup_teardown(every_optimizer, setup, teardown),
      cmocka_unit_test_setup_teardown(state_in_bfloat16, setup, teardown),
      cmocka_unit_test_setup_teardown(callbacks_resume, setup, teardown),
      cmocka_unit_test_setup_teardown(stateful_layers_resume, setup, teardown),
      cmocka_unit_test_setup_teardown(data_sets, setup, teardown),
      cmocka_unit_test_setup_teardown(data_sets_across_epochs, setup, teardown),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
