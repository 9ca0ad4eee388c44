/* The recorded models of int8 and int4 through the program: quantize, convert, predict and train. */
#include "cli/program.h"
#include "saving/integer_recordings.h"

/* The program's files, which the next recording replaces. */
static char file_in[512], file_out[512], file_log[512], model_in[1024], data_in[1024], example_count[16];

static void set_paths(const recording *r) {
  snprintf(data_in, sizeof data_in, "%s", path_of(r, ".npz"));
  snprintf(example_count, sizeof example_count, "%d", r->examples);
  snprintf(file_in, sizeof file_in, "%s", in_folder("quantized.keras"));
  snprintf(file_out, sizeof file_out, "%s", in_folder("out.npz"));
  snprintf(file_log, sizeof file_log, "%s", in_folder("steps.jsonl"));
}

static void quantize(const recording *r) {
  const mix_quantize_options o = options_of(r);
  char block[16];
  snprintf(block, sizeof block, "%d", o.block_size ? (int)o.block_size : 128);
  snprintf(model_in, sizeof model_in, "%s", path_of(r, ".keras"));
  const char *filter = o.filter ? o.filter : ".";
  int code;
  if (o.weight_low)
    code = run_program("quantize", model_in, file_in, "--mode", o.mode, "--weight-range=-63,63",
                       "--input-range=-100,100", "--input-epsilon", "1e-3");
  else if (!strcmp(o.mode, "int8"))
    code = run_program("quantize", model_in, file_in, "--mode", o.mode, "--filter", filter,
                       o.weights_only ? "--weights-only" : "--mode=int8");
  else
    code = run_program("quantize", model_in, file_in, "--mode", o.mode, "--filter", filter, "--block-size",
                       block, o.quantize_inputs ? "--inputs" : "--weights-only");
  assert_code(code, 0);
}

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
  assert_code(run_program("predict", "--model", model, "--data", data_in, "--batch-size", example_count,
                          "--output", file_out, "--accumulate", "exact"),
              0);
  mix_list *made = model_arrays(mix_npz_open(file_out), "y"), *expected = expected_outputs(r, stem);
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(made); i++)
    assert_close(r->name, stem, i, mix_list_get(made, i), mix_list_get(expected, i), output_bound(r, stem));
}

static void check_log(const recording *r, const json_t *losses) {
  FILE *file = fopen(file_log, "r");
  char line[512];
  assert_non_null(file);
  for (size_t i = 0; i < json_array_size(losses); i++) {
    json_t *step = fgets(line, sizeof line, file) ? json_loads(line, 0, NULL) : NULL;
    assert_non_null(step);
    check_loss(r, (int)i, json_number_value(json_object_get(step, "loss")));
    json_decref(step);
  }
  fclose(file);
}

static void train(const recording *r, const char *model) {
  const json_t *losses = json_object_get(r->json, "losses");
  char steps[16], stem[16];
  snprintf(steps, sizeof steps, "%zu", json_array_size(losses));
  snprintf(stem, sizeof stem, "step%zu", json_array_size(losses));
  assert_code(run_program("train", "--model", model, "--data", data_in, "--batch-size", example_count,
                          "--epochs", steps, "--no-shuffle", "--accumulate", "exact", "--verbose", "0",
                          "--step-log", file_log, "--save", file_out),
              0);
  check_log(r, losses);
  if (is_policy(r, "float32")) check_archive(r, stem, false);
}

/* What Keras wrote trains; what is written here predicts, and in the test of the library trains too. */
static void run_commands(const recording *r) {
  set_paths(r);
  quantize(r);
  assert_code(run_program("convert", file_in, file_out), 0);
  check_archive(r, "init", true);
  check_outputs(r, file_in, "after");
  snprintf(model_in, sizeof model_in, "%s", path_of(r, ".after.keras"));
  if (json_array_size(json_object_get(r->json, "losses")))
    train(r, model_in);
  else
    check_outputs(r, model_in, "after");
}

int main(void) { return run_recordings("int8 and int4 recordings", is_integer_recording, run_commands); }
