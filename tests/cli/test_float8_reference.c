/* The recorded float8 models through the program: quantize, convert, predict and train. */
#include "cli/precision_recordings.h"
#include "saving/float8_recordings.h"

static void quantize(const recording *r) {
  char history[16];
  const json_t *filters = json_object_get(r->json, "filters"), *length = json_object_get(r->json, "history");
  snprintf(history, sizeof history, "%d", length ? (int)json_integer_value(length) : 1024);
  assert_code(run_program("quantize", model_in, file_in, "--mode", "float8", "--amax-history", history,
                          "--filter", filters ? json_string_value(filters) : "."),
              0);
}

/* The arrays of an archive under the paths of the recording. */
static void check_archive(const recording *r, const char *stem, double bound, bool all) {
  mix_npz *npz = mix_npz_open(file_out);
  assert_no_error();
  mix_list *expected = model_arrays(r->npz, stem);
  for (int i = 0; i < mix_list_count(expected); i++)
    if (all || is_float8_state(r, i))
      assert_close(r->name, stem, i, mix_npz_get(npz, recorded_path(r, i)), mix_list_get(expected, i), bound);
}

/* Where the recording rounds otherwise, the expected outputs are those of the library, whose own test
 * compares the layers with the recording. */
static mix_list *expected_outputs(const recording *r, const char *model, const char *stem) {
  if (!rounds_once(r, stem)) return model_arrays(r->npz, stem);
  mix_list *made = predict(r, mix_model_load(model));
  assert_no_error();
  return made;
}

static void check_outputs(const recording *r, const char *model, const char *stem) {
  assert_all_close(r, stem, predict_by_program(model, NULL), expected_outputs(r, model, stem),
                   rounds_once(r, stem) ? 0 : output_bound(r, stem));
}

static mix_tensor *concatenated(mix_list *parts) {
  mix_tensor *tensors[64];
  const int count = mix_list_count(parts);
  assert_true(count <= 64);
  for (int i = 0; i < count; i++) tensors[i] = mix_list_get(parts, i);
  return mix_concat(count, tensors, 0);
}

/* Examples of which each step has the next `examples`: the inputs grow by x_factors. */
static const char *data_of_steps(const recording *r, int steps) {
  static char path[512];
  mix_tensor *x = mix_npz_get(r->npz, "x"), *y = mix_npz_get(r->npz, "y"),
             *factors = mix_npz_get(r->npz, "x_factors");
  mix_list *xs = mix_list_new(0, NULL), *ys = mix_list_new(0, NULL);
  for (int step = 0; step < steps; step++) {
    mix_tensor *factor = mix_slice(factors, MIX_SHAPE(step % 12), MIX_SHAPE(1));
    mix_list_append(xs, mix_multiply(x, mix_cast(factor, mix_tensor_dtype(x))));
    mix_list_append(ys, y);
  }
  snprintf(path, sizeof path, "%s", in_folder("steps.npz"));
  mix_npz_save(path, 2, (const char *const[]){"x", "y"},
               (mix_tensor *[]){concatenated(xs), concatenated(ys)});
  assert_no_error();
  return path;
}

static void train(const recording *r, const char *model) {
  const int steps = recorded_steps(r);
  const bool grows = mix_npz_get(r->npz, "x_factors");
  train_by_program(model, grows ? data_of_steps(r, steps) : data_in, grows ? 1 : (size_t)steps);
  check_log(r, loss_bound(r));
  if (!is_policy(r, "mixed_float16"))
    check_archive(r, last_step(r), bound_of(r, last_step(r), 1e-4, 8e-2, 0), is_policy(r, "float32"));
}

static void run_commands(const recording *r) {
  set_paths(r);
  quantize(r);
  assert_code(run_program("convert", file_in, file_out), 0);
  check_archive(r, "init", 0, true);
  check_outputs(r, file_in, "after");
  snprintf(model_in, sizeof model_in, "%s", path_of(r, ".after.keras"));
  check_outputs(r, model_in, "after");
  train(r, file_in);
}

int main(void) { return run_recordings("float8 recordings", is_float8_recording, run_commands); }
