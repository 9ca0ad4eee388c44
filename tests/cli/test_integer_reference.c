/* The recorded models of int8 and int4 through the program: quantize, convert, predict and train. */
#include "cli/precision_recordings.h"
#include "saving/integer_recordings.h"

/* The arrays of an archive, in Keras's order. */
static void check_archive(const recording *r, const char *stem, bool init) {
  mix_npz *npz = mix_npz_open(file_out);
  assert_no_error();
  mix_list *expected = model_arrays(r->npz, stem);
  assert_int_equal(mix_npz_count(npz), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++) {
    assert_string_equal(mix_npz_name(npz, i), recorded_path(r, i));
    mix_tensor *got = mix_npz_get(npz, recorded_path(r, i));
    assert_close(r->name, stem, i, got, mix_list_get(expected, i), init ? init_bound(r, i) : weight_bound(r));
  }
}

static void check_outputs(const recording *r, const char *model, const char *stem) {
  assert_all_close(r, stem, predict_by_program(model, NULL), expected_outputs(r, stem),
                   output_bound(r, stem));
}

static void train(const recording *r, const char *model) {
  train_by_program(model, data_in, (size_t)recorded_steps(r));
  check_log(r, loss_bound(r));
  if (is_policy(r, "float32")) check_archive(r, last_step(r), false);
}

/* What Keras wrote trains; what is written here predicts, and in the test of the library trains too. */
static void run_commands(const recording *r) {
  set_paths(r);
  quantize_to_integers(r);
  assert_code(run_program("convert", file_in, file_out), 0);
  check_archive(r, "init", true);
  check_outputs(r, file_in, "after");
  snprintf(model_in, sizeof model_in, "%s", path_of(r, ".after.keras"));
  if (recorded_steps(r))
    train(r, model_in);
  else
    check_outputs(r, model_in, "after");
}

int main(void) { return run_recordings("int8 and int4 recordings", is_integer_recording, run_commands); }
