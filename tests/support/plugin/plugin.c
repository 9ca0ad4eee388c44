/* A plug-in that contains a whole static library, for backend/test_unload.c and train/test_several_copies.c.
 */
#include "train.h"
#include <stdio.h>

#define PUBLIC __attribute__((visibility("default")))

/* Leaves an object in the thread's root scope, and no thread. */
PUBLIC int make_object(void) { return mix_list_new(0, NULL) != NULL; }

/* Leaves objects in the thread's root scope, and threads of a plan behind. */
PUBLIC int compute(void) {
  mix_set_device("cpu");
  mix_set_threads(2);
  mix_tensor *x = mix_fill(MIX_SHAPE(256, 256), 1, MIX_FLOAT32);
  return mix_tensor_item(mix_reduce_sum(mix_matmul(x, x, false, false), MIX_ALL_AXES, false)) == 1 << 24;
}

/* Leaves a pass behind whose thread works. It calls no function that is in the plug-in for itself. */
PUBLIC int begin_pass(void) {
  mix_dataset *numbers = mix_dataset_repeat(mix_dataset_range(0, 100, 1), -1);
  return mix_iterator_next(mix_dataset_iterate(mix_dataset_prefetch(numbers, 64))) != NULL;
}

static mix_list *doubled(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_add(mix_list_get(arguments, 0), mix_list_get(arguments, 0)));
}

/* Leaves a run behind that nobody waited for, and values in the memory of a PJRT plug-in. */
PUBLIC int run_on_xla(void) {
  char device[600];
  snprintf(device, sizeof device, "xla:%s", getenv("MIXTAPE_UNLOAD_PJRT"));
  mix_set_device(device);
  mix_function *function = mix_function_new(doubled, NULL);
  return mix_function_call(function, mix_list_of(mix_fill(MIX_SCALAR, 1, MIX_FLOAT32))) != NULL;
}

PUBLIC bool train(const char *policy, int threads, training *result) {
  return train_digits(policy, threads, result);
}
