/* Shared by the tests that run the recorded models of other precisions through the program. */
#ifndef TESTS_CLI_PRECISION_RECORDINGS_H
#define TESTS_CLI_PRECISION_RECORDINGS_H

#include "cli/program.h"
#include "saving/precision_recordings.h"

/* The program's files, which the next recording replaces. */
static char file_in[512], file_out[512], file_log[512], model_in[1024], data_in[1024], example_count[16];

static inline void set_paths(const recording *r) {
  snprintf(model_in, sizeof model_in, "%s", path_of(r, ".keras"));
  snprintf(data_in, sizeof data_in, "%s", path_of(r, ".npz"));
  snprintf(example_count, sizeof example_count, "%d", r->examples);
  snprintf(file_in, sizeof file_in, "%s", in_folder("quantized.keras"));
  snprintf(file_out, sizeof file_out, "%s", in_folder("out.npz"));
  snprintf(file_log, sizeof file_log, "%s", in_folder("steps.jsonl"));
}

/* model_in as file_in, with kernels of integers. */
static inline void quantize_to_integers(const recording *r) {
  const mix_quantize_options o = options_of(r);
  char block[16];
  snprintf(block, sizeof block, "%d", o.block_size ? (int)o.block_size : 128);
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

/* The adapter may be NULL. */
static inline mix_list *predict_by_program(const char *model, const char *adapter) {
  assert_code(run_program("predict", "--model", model, "--data", data_in, "--batch-size", example_count,
                          "--output", file_out, "--accumulate", "exact", adapter ? "--load-lora" : NULL,
                          adapter),
              0);
  mix_list *made = model_arrays(mix_npz_open(file_out), "y");
  assert_no_error();
  return made;
}

static inline void train_by_program(const char *model, const char *data, size_t epochs) {
  char number[16];
  snprintf(number, sizeof number, "%zu", epochs);
  assert_code(run_program("train", "--model", model, "--data", data, "--batch-size", example_count,
                          "--epochs", number, "--no-shuffle", "--accumulate", "exact", "--verbose", "0",
                          "--step-log", file_log, "--save", file_out),
              0);
}

/* The losses of all steps, and the loss scales where they are recorded. */
static inline void check_log(const recording *r, double loss_bound) {
  json_t *lines = lines_of(file_log);
  assert_int_equal(json_array_size(lines), recorded_steps(r));
  for (int i = 0; i < recorded_steps(r); i++) {
    const json_t *step = json_array_get(lines, (size_t)i), *scale = recorded_scale(r, i);
    check_loss(r, i, number_in(json_object_get(step, "loss")), loss_bound);
    if (scale) assert_true(number_in(json_object_get(step, "loss_scale")) == json_number_value(scale));
  }
  json_decref(lines);
}

#endif
