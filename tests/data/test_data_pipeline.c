/* Pipelines in one expression: the elements of the nested calls, and their errors. */
#include "model/support.h"
#include <mixtape/data_pipeline.h>

/* The elements of a pass, of one tensor each, as text: "[0 2] [4 6]". */
static const char *pass(mix_dataset *dataset) {
  static char text[1024];
  size_t used = 0;
  text[0] = 0;
  mix_iterator *iterator = mix_dataset_iterate(dataset);
  for (mix_list *element; (element = mix_iterator_next(iterator));) {
    mix_tensor *tensor = mix_list_get(element, mix_list_count(element) - 1);
    const int64_t count = mix_shape_size(mix_tensor_shape(tensor));
    used += (size_t)snprintf(text + used, sizeof text - used, "%s[", used ? " " : "");
    for (int64_t i = 0; i < count; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", i ? " " : "", at(tensor, i));
    used += (size_t)snprintf(text + used, sizeof text - used, "]");
  }
  return text;
}

static bool is_even(void *context, mix_list *element) {
  (void)context;
  return (int)mix_tensor_item(mix_list_get(element, 0)) % 2 == 0;
}
static mix_list *tenfold(void *context, mix_list *element) {
  mix_tensor *x = mix_list_get(element, 0);
  return mix_list_of(mix_multiply(x, mix_scalar(*(const double *)context, mix_tensor_dtype(x))));
}
static mix_dataset *twice(void *context, mix_list *element) {
  (void)context;
  return mix_dataset_repeat(mix_dataset_from_element(element), 2);
}

static void steps_come_in_order(void **state) {
  (void)state;
  double ten = 10;
  assert_string_equal(pass(mix_data_pipeline(mix_dataset_range(0, 10, 1), mix_step_filter(is_even),
                                             mix_step_map(tenfold, .context = &ten), mix_step_batch(2))),
                      "[0 20] [40 60] [80]");
  assert_string_equal(
      pass(mix_data_pipeline(mix_dataset_range(0, 10, 1),
                             mix_step_map(tenfold, .context = &ten, .num_parallel_calls = 2),
                             mix_step_filter(is_even), mix_step_batch(4, .drop_remainder = true))),
      "[0 10 20 30] [40 50 60 70]");
  assert_no_error();
}

/* Each step, beside the function that it stands for. */
static void every_step_is_its_function(void **state) {
  (void)state;
#define SAME(step, ...)                                                                                      \
  do {                                                                                                       \
    char expected[1024];                                                                                     \
    mix_dataset *range = mix_dataset_range(0, 6, 1);                                                         \
    snprintf(expected, sizeof expected, "%s", pass(mix_dataset_##step(range __VA_ARGS__)));                  \
    assert_no_error();                                                                                       \
    assert_true(*expected);                                                                                  \
    assert_string_equal(pass(mix_data_pipeline(range, STEP)), expected);                                     \
  } while (0)
#define STEP mix_step_shuffle(6, .seed = 3)
  SAME(shuffle, , 6, .seed = 3);
#undef STEP
#define STEP mix_step_window(3, .shift = 1)
  SAME(window, , 3, .shift = 1);
#undef STEP
#define STEP mix_step_padded_batch(4)
  SAME(padded_batch, , 4);
#undef STEP
#define STEP mix_step_interleave(twice, .cycle_length = 2)
  SAME(interleave, , twice, .cycle_length = 2);
#undef STEP
#define STEP mix_step_repeat(2)
  SAME(repeat, , 2);
#undef STEP
#define STEP mix_step_take(4)
  SAME(take, , 4);
#undef STEP
#define STEP mix_step_skip(4)
  SAME(skip, , 4);
#undef STEP
#define STEP mix_step_shard(3, 1)
  SAME(shard, , 3, 1);
#undef STEP
#define STEP mix_step_enumerate(7)
  SAME(enumerate, , 7);
#undef STEP
#define STEP mix_step_cache()
  SAME(cache, );
#undef STEP
#define STEP mix_step_prefetch(2)
  SAME(prefetch, , 2);
#undef STEP
  assert_string_equal(
      pass(mix_data_pipeline(mix_dataset_range(0, 4, 1), mix_step_batch(2), mix_step_unbatch())),
      "[0] [1] [2] [3]");
}

static mix_dataset *count_calls(mix_dataset *dataset, const void *calls) {
  ++**(int *const *)calls;
  return dataset;
}

static int released;
static void release(void *context) { ++*(int *)context; }

/* The first error is reported. Contexts of steps before it were taken over, those after it were not. */
static void errors_pass_through(void **state) {
  (void)state;
  assert_null(mix_data_pipeline(mix_dataset_range(0, 4, 1), mix_step_batch(-1),
                                mix_step_map(tenfold, .context = &released, .release = release)));
  assert_error(MIX_VALUE_ERROR, "dataset_batch: batch_size is -1");
  assert_int_equal(released, 0);
  MIX_SCOPE {
    assert_null(mix_data_pipeline(mix_dataset_range(0, 4, 1),
                                  mix_step_map(tenfold, .context = &released, .release = release),
                                  mix_step_batch(-1)));
  }
  assert_int_equal(released, 1);
  assert_error(MIX_VALUE_ERROR, "dataset_batch: batch_size is -1");
  int calls = 0, *counter = &calls;
  const mix_data_step counted = {count_calls, &counter};
  assert_null(mix_data_pipeline(mix_dataset_range(0, 4, 1), counted, mix_step_batch(-1), counted));
  assert_error(MIX_VALUE_ERROR, "dataset_batch: batch_size is -1");
  assert_int_equal(calls, 1);
  assert_null(mix_data_pipeline(NULL, mix_step_batch(2), mix_step_cache()));
  assert_error(MIX_TYPE_ERROR, "dataset_batch");
  assert_null(mix_data_pipeline(mix_dataset_range(0, 4, 1), mix_step_map(NULL)));
  assert_error(MIX_TYPE_ERROR, "dataset_map");
}

/* The functions behind the macros, which always give a number. */
static void a_step_without_its_number(void **state) {
  (void)state;
  mix_dataset *range = mix_dataset_range(0, 4, 1);
  assert_null(mix_data_apply_take(range, NULL));
  assert_error(MIX_TYPE_ERROR, "the step take got no number");
  assert_null(mix_data_apply_shard(range, NULL));
  assert_error(MIX_TYPE_ERROR, "the step shard got no number");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(steps_come_in_order), TEST(every_step_is_its_function),
                                     TEST(errors_pass_through), TEST(a_step_without_its_number)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
