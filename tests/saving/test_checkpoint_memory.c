/* Checkpoints in memory: a run between a host's time steps stops and goes on by bytes alone. */
#include "base/alloc.h"
#include "saving/resume_support.h"
#include "support/every_allocation.h"
#include "support/skip.h"

enum { ROWS = 20, STEPS = 9 };
#define FOLDER in_folder("memory")

/* ---- a run ---- */

static const run_kind kind = {.dropout = true, .policy = "mixed_float16", .initial_scale = 0x1p20};

/* Another seed and other weights than those of the checkpoint, as in another process. */
static mix_model *made_anew(uint64_t seed) {
  mix_set_seed(seed);
  mix_set_global_policy(kind.policy);
  return model_of(&kind);
}

static void train(mix_model *model, int64_t first, int64_t end, double *losses) {
  examples e = examples_of(ROWS, 6, 3);
  for (int64_t step = first; step < end; step++)
    MIX_SCOPE {
      mix_logs *logs = mix_model_train_on_batch(model, e.x, e.y);
      assert_no_error();
      losses[step] = mix_logs_get(logs, "loss");
      mix_list *predicted = mix_model_predict(model, e.x); /* a host asks its surrogate in every step */
      assert_non_null(predicted);
    }
}

static unsigned char *state_of(mix_model *model, size_t *size) {
  mix_list *all = mix_model_weights(model), *state = mix_optimizer_variables(mix_model_optimizer(model));
  for (int i = 0; i < mix_list_count(state); i++) mix_list_append(all, mix_list_get(state, i));
  mix_list_append(all, mix_loss_scale_variable(mix_optimizer_loss_scale_object(mix_model_optimizer(model))));
  return bits_of(all, size);
}

static size_t size_of(mix_tensor *bytes) {
  assert_non_null(bytes);
  assert_int_equal(mix_tensor_dtype(bytes), MIX_UINT8);
  assert_int_equal(mix_tensor_shape(bytes).rank, 1);
  return (size_t)mix_shape_size(mix_tensor_shape(bytes));
}

/* A copy in a block of exactly its size, of which sanitizers see what is read beyond. */
static void *copy_of(mix_tensor *bytes, size_t *size) {
  *size = size_of(bytes);
  void *copy = malloc(*size);
  assert_non_null(copy);
  memcpy(copy, mix_tensor_data(bytes), *size);
  return copy;
}

static void a_run_goes_on_from_memory(void **state) {
  (void)state;
  double straight[STEPS], resumed[STEPS];
  size_t size, other;
  unsigned char *expected = NULL;
  MIX_SCOPE {
    mix_model *model = made_anew(1);
    train(model, 0, STEPS, straight);
    expected = state_of(model, &size);
  }
  for (int64_t stop = 0; stop < STEPS; stop++)
    MIX_SCOPE {
      size_t saved;
      mix_model *first = made_anew(1), *second;
      train(first, 0, stop, resumed);
      void *bytes =
          copy_of(mix_checkpoint_to_memory(mix_checkpoint_new(NULL, .model = first), stop, NULL), &saved);
      mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = second = made_anew(77));
      assert_int_equal(mix_checkpoint_from_memory(checkpoint, bytes, saved, NULL), stop);
      memset(bytes, 0xff, saved); /* the caller's again */
      free(bytes);
      train(second, stop, STEPS, resumed);
      assert_memory_equal(straight, resumed, sizeof straight);
      unsigned char *bits = state_of(second, &other);
      assert_int_equal(size, other);
      assert_memory_equal(expected, bits, size);
      free(bits);
    }
  free(expected);
}

static void the_bytes_are_those_of_the_file(void **state) {
  (void)state;
  static char file[1 << 16];
  forget("memory");
  mix_model *model = made_anew(1);
  examples e = examples_of(ROWS, 6, 3);
  mix_dataset *data = mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(e.x, e.y), 8), 5);
  mix_iterator *batches = mix_dataset_iterate(data);
  mix_list *second = NULL;
  mix_iterator_next(batches);
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  mix_checkpoint_put(checkpoint, "half", mix_scalar(3, MIX_BFLOAT16));
  mix_tensor *bytes = mix_checkpoint_to_memory(checkpoint, 7, batches);
  assert_int_equal(mix_checkpoint_save(checkpoint, 7, batches), MIX_OK);
  FILE *saved = fopen(in_folder("memory/checkpoint-7.npz"), "rb");
  assert_non_null(saved);
  const size_t size = fread(file, 1, sizeof file, saved);
  fclose(saved);
  assert_int_equal(size_of(bytes), size);
  assert_memory_equal(mix_tensor_data(bytes), file, size);
  /* Either is restored, with the values and the position in the data. */
  assert_non_null(second = mix_iterator_next(batches));
  mix_checkpoint *again = mix_checkpoint_new(NULL, .model = model);
  mix_iterator *other = mix_dataset_iterate(data);
  assert_int_equal(mix_checkpoint_from_memory(again, file, size, other), 7);
  assert_true(at(mix_checkpoint_get(again, "half"), 0) == 3);
  mix_list *continued = mix_iterator_next(other);
  assert_true(at(mix_list_get(second, 0), 0) == at(mix_list_get(continued, 0), 0));
  assert_no_error();
}

/* What was given back does not follow what is trained later, and outlives the checkpoint. */
static void the_bytes_stay_as_they_are(void **state) {
  (void)state;
  double losses[STEPS];
  mix_model *model = made_anew(1);
  mix_tensor *bytes = NULL;
  MIX_SCOPE {
    bytes = mix_retain(mix_checkpoint_to_memory(mix_checkpoint_new(NULL, .model = model), 0, NULL));
  }
  size_t size;
  void *copy = copy_of(bytes, &size);
  train(model, 0, 2, losses);
  assert_memory_equal(mix_tensor_data(bytes), copy, size);
  assert_int_equal(mix_checkpoint_from_memory(mix_checkpoint_new(NULL, .model = model),
                                              mix_tensor_data(bytes), size, NULL),
                   0);
  mix_release(bytes);
  free(copy);
}

static void bad_bytes_are_refused(void **state) {
  (void)state;
  mix_model *model = made_anew(1), *other;
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = model);
  size_t size, bits_size, after_size;
  unsigned char *bytes = copy_of(mix_checkpoint_to_memory(checkpoint, 4, NULL), &size);
  mix_checkpoint *target = mix_checkpoint_new(NULL, .model = other = made_anew(5));
  unsigned char *bits = state_of(other, &bits_size);
  for (size_t cut = 0; cut < size; cut += cut < 8 || size - cut < 120 ? 1 : 997) {
    unsigned char *part = malloc(cut ? cut : 1);
    memcpy(part, bytes, cut);
    assert_int_equal(mix_checkpoint_from_memory(target, part, cut, NULL), -1);
    assert_error(MIX_FORMAT_ERROR, "checkpoint_from_memory: no whole checkpoint");
    free(part);
  }
  for (size_t i = 0; i < size - 100; i += 991) { /* before the seal, whose damage is a truncation's */
    bytes[i] ^= 0x10;
    assert_int_equal(mix_checkpoint_from_memory(target, bytes, size, NULL), -1);
    assert_error(MIX_FORMAT_ERROR, "its SHA-256 differs");
    bytes[i] ^= 0x10;
  }
  assert_int_equal(mix_checkpoint_from_memory(target, "a restart file", 14, NULL), -1);
  assert_error(MIX_FORMAT_ERROR, "no whole checkpoint");
  assert_int_equal(mix_checkpoint_from_memory(target, NULL, 14, NULL), -1);
  assert_error(MIX_TYPE_ERROR, "checkpoint_from_memory: data is NULL");
  assert_int_equal(mix_checkpoint_from_memory((mix_checkpoint *)model, bytes, size, NULL), -1);
  assert_error(MIX_TYPE_ERROR, "checkpoint_from_memory: expected a checkpoint");
  assert_null(mix_checkpoint_to_memory(checkpoint, -1, NULL));
  assert_error(MIX_VALUE_ERROR, "checkpoint_to_memory: step is -1");
  assert_null(mix_checkpoint_to_memory(checkpoint, 0, (mix_iterator *)model));
  assert_error(MIX_TYPE_ERROR, "checkpoint_to_memory: got an object of class model; expected an iterator");
  unsigned char *after = state_of(other, &after_size);
  assert_int_equal(bits_size, after_size);
  assert_memory_equal(bits, after, bits_size); /* no variable has changed */
  assert_int_equal(mix_checkpoint_from_memory(target, bytes, size, NULL), 4);
  free(bits);
  free(after);
  free(bytes);
}

static void a_fits_checkpoint_has_no_step(void **state) {
  (void)state;
  static char file[1 << 16];
  forget("memory");
  mix_model *model = made_anew(1);
  examples e = examples_of(ROWS, 6, 3);
  assert_non_null(
      mix_model_fit(model, e.x, e.y, .batch_size = 5, .epochs = 1, .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(mix_backup_and_restore(FOLDER, .keep_checkpoint = true))));
  FILE *saved = fopen(in_folder("memory/checkpoint-4.npz"), "rb");
  assert_non_null(saved);
  const size_t size = fread(file, 1, sizeof file, saved);
  fclose(saved);
  assert_int_equal(mix_checkpoint_from_memory(mix_checkpoint_new(NULL, .model = model), file, size, NULL),
                   -1);
  assert_error(MIX_FORMAT_ERROR, "'step' is missing");
}

static void without_a_folder_nothing_is_on_disk(void **state) {
  (void)state;
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = made_anew(1));
  assert_int_equal(mix_checkpoint_save(checkpoint, 1, NULL), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "checkpoint_save: the checkpoint has no folder");
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), -1);
  assert_error(MIX_VALUE_ERROR, "checkpoint_restore: the checkpoint has no folder");
  assert_int_equal(mix_checkpoint_delete(checkpoint), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "checkpoint_delete: the checkpoint has no folder");
}

/* ---- memory that runs out ---- */

/* Ours alone, or those of libzip, OpenSSL and jansson too. */
static void fail_after(int64_t count, bool everybody) {
  if (everybody)
    allocations_left = count;
  else
    mix_inject_allocation_failure(count);
}

/* The step; -1: it failed. */
static int64_t read_or_write(mix_checkpoint *checkpoint, bool reads, const void *bytes, size_t size) {
  int64_t step = -1;
  MIX_SCOPE {
    if (reads)
      step = mix_checkpoint_from_memory(checkpoint, bytes, size, NULL);
    else
      step = mix_checkpoint_to_memory(checkpoint, 4, NULL) ? 4 : -1;
  }
  return step;
}

/* Returns the failures. Other libraries may say what they like, as libzip, to which an archive without memory
 * for its directory is none; or do without what they did not get, so that the call has done its work. */
static int fail_each(mix_checkpoint *checkpoint, bool reads, const void *bytes, size_t size, bool everybody) {
  int failures = 0;
  for (int64_t after = 0;; after += after < 50 ? 1 : 17) {
    char message[1024];
    fail_after(after, everybody);
    const int64_t step = read_or_write(checkpoint, reads, bytes, size);
    const bool all = everybody ? allocations_left >= 0 : step >= 0;
    fail_after(-1, everybody);
    const mix_status status = mix_error_take(message, sizeof message);
    if (step < 0 && (everybody ? status == MIX_OK : status != MIX_MEMORY_ERROR))
      fail_msg("after %lld allocations: %s", (long long)after, message);
    if (step >= 0) assert_true(step == 4 && status == MIX_OK);
    failures += step < 0;
    if (all) return failures;
  }
}

static void run_out(bool everybody) {
  mix_model *model = made_anew(1);
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = model);
  size_t size, before, after;
  void *bytes = copy_of(mix_checkpoint_to_memory(checkpoint, 4, NULL), &size);
  unsigned char *bits = state_of(model, &before), *left;
  for (int reads = 0; reads < 2; reads++)
    assert_true(fail_each(checkpoint, reads, bytes, size, everybody) > 30);
  left = state_of(model, &after);
  assert_int_equal(before, after);
  assert_memory_equal(bits, left, before);
  free(left);
  free(bits);
  free(bytes);
}
static void memory_that_runs_out(void **state) {
  (void)state;
  run_out(false);
}
static void memory_of_others_that_runs_out(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizers have their own malloc");
  run_out(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_run_goes_on_from_memory),     TEST(the_bytes_are_those_of_the_file),
      TEST(the_bytes_stay_as_they_are),    TEST(bad_bytes_are_refused),
      TEST(a_fits_checkpoint_has_no_step), TEST(without_a_folder_nothing_is_on_disk),
      TEST(memory_that_runs_out),          TEST(memory_of_others_that_runs_out)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
