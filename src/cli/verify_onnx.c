/* mixtape convert --verify: what a file in ONNX computes beside what the model predicts. */
#include "cli/cli.h"

#include "base/error.h"
#include "model/model.h"
#include "onnx/onnxruntime.h"

#include <math.h>
#include <mixtape/export.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 32, PATH = 4096, MAX_INPUTS = 128 };

typedef struct verification {
  mix_model *model;
  const char *path, *what; /* of the file that is run, and how it is told */
  mix_list *inputs;        /* of all rows, as the file takes them */
  int64_t rows, batch;
  double bound;             /* relative to the largest magnitude of an output */
  mix_onnxruntime *session; /* NULL: by our own reader */
  mix_model *read;          /* then this is the file */
  double apart[MIX_MODEL_MAX], largest[MIX_MODEL_MAX];
} verification;

/* ---- the bound ---- */

/* The least precise dtype that a layer computes in. */
static mix_dtype lowest_dtype(mix_list *layers) {
  mix_dtype lowest = MIX_FLOAT32;
  for (int i = 0; i < mix_list_count(layers) && lowest != MIX_BFLOAT16; i++) {
    mix_layer *layer = mix_list_get(layers, i);
    const mix_dtype own = layer->is_model ? lowest_dtype(mix_layer_layers(layer))
                                          : mix_policy_compute_dtype(mix_layer_own_policy(layer));
    if (own == MIX_BFLOAT16 || own == MIX_FLOAT16) lowest = own;
  }
  return lowest;
}

/* Several times what kernels of two libraries differ by for networks of some dozens of layers; of 16 bits
 * a few units in the last place. */
static double bound_of(mix_dtype dtype) {
  return dtype == MIX_BFLOAT16 ? 5e-2 : dtype == MIX_FLOAT16 ? 1e-2 : 1e-5;
}

/* ---- the values ---- */

/* As the model's own predict would take it: in the dtype and with the axes of the input. */
static mix_tensor *input_of(const mix_model *model, int number, mix_tensor *x) {
  mix_shape shape = mix_model_input_shape(model, number);
  shape.dims[0] = mix_tensor_shape(x).dims[0];
  return mix_cast(mix_reshape(x, shape), mix_model_input_dtype(model, number));
}

static bool take_inputs(verification *v, void *x) {
  const int count = mix_model_input_count(v->model);
  const bool several = mix_is(x, &mix_list_class);
  if (count > MAX_INPUTS) return mix_fail_unsupported("--verify: %d inputs; at most %d", count, MAX_INPUTS);
  v->inputs = mix_list_new(0, NULL);
  for (int i = 0; i < count && !mix_failed(); i++)
    mix_list_append(v->inputs, input_of(v->model, i, several ? mix_list_get(x, i) : x));
  if (mix_failed()) return false;
  v->rows = mix_tensor_shape(mix_list_get(v->inputs, 0)).dims[0];
  if (v->rows < v->batch)
    return mix_fail_value("--verify: the data have %lld rows, and --batch is %lld", (long long)v->rows,
                          (long long)v->batch);
  if (v->batch) v->rows -= v->rows % v->batch; /* the file takes whole batches alone */
  return true;
}

static mix_tensor *rows_of(mix_tensor *x, int64_t first, int64_t count) {
  mix_shape begin = {.rank = mix_tensor_shape(x).rank}, size = mix_tensor_shape(x);
  begin.dims[0] = first;
  size.dims[0] = count;
  return mix_slice(x, begin, size);
}

static mix_list *run_session(verification *v, mix_list *inputs) {
  const char *input_names[MAX_INPUTS], *output_names[MIX_MODEL_MAX];
  mix_tensor *tensors[MAX_INPUTS];
  char names[MIX_MODEL_MAX][24];
  const int count = mix_list_count(inputs), outputs = mix_model_output_count(v->model);
  for (int i = 0; i < count; i++) {
    input_names[i] = mix_model_input_name(v->model, i);
    tensors[i] = mix_list_get(inputs, i);
  }
  for (int o = 0; o < outputs; o++) {
    snprintf(names[o], sizeof names[o], o ? "Identity_%d:0" : "Identity:0", o);
    output_names[o] = names[o];
  }
  return mix_onnxruntime_run(v->session, count, input_names, tensors, outputs, output_names);
}

static void *one_or_all(mix_list *list) { return mix_list_count(list) == 1 ? mix_list_get(list, 0) : list; }

static void compare(verification *v, int output, mix_tensor *own, mix_tensor *other) {
  if (!own || !other || !mix_shape_equal(mix_tensor_shape(own), mix_tensor_shape(other))) {
    mix_fail_value("%s: output %d has another shape than the model's", v->path, output);
    return;
  }
  mix_tensor *a = mix_cast(own, MIX_FLOAT64), *b = mix_cast(other, MIX_FLOAT64);
  const double largest = mix_tensor_item(mix_reduce_max(mix_abs(a), MIX_ALL_AXES, false));
  const double apart = mix_tensor_item(mix_reduce_max(mix_abs(mix_subtract(a, b)), MIX_ALL_AXES, false));
  if (!(apart <= v->apart[output])) v->apart[output] = apart; /* NaN stays */
  if (largest > v->largest[output]) v->largest[output] = largest;
}

static void compare_rows(verification *v, int64_t first, int64_t count) {
  mix_list *inputs = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(v->inputs); i++)
    mix_list_append(inputs, rows_of(mix_list_get(v->inputs, i), first, count));
  mix_list *own = mix_failed() ? NULL : mix_model_predict_on_batch(v->model, one_or_all(inputs));
  mix_list *other = !own         ? NULL
                    : v->session ? run_session(v, inputs)
                                 : mix_model_predict_on_batch(v->read, one_or_all(inputs));
  for (int o = 0; other && o < mix_list_count(own); o++)
    compare(v, o, mix_list_get(own, o), mix_list_get(other, o));
}

static int report(const verification *v) {
  int code = CLI_OK;
  for (int o = 0; o < mix_model_output_count(v->model); o++) {
    const double bound = v->bound * (v->largest[o] > 0 ? v->largest[o] : 1);
    const bool within = v->apart[o] <= bound;
    printf("output %d: differs by %.3g at most (bound %.3g, %g of the largest magnitude %.3g): %s\n", o,
           v->apart[o], bound, v->bound, v->largest[o], within ? "agrees" : "DIFFERS");
    if (!within) code = CLI_FAILED;
  }
  return code;
}

/* The export has forms that our reader has not, as long loops. */
static void ask_for_onnxruntime(void) {
  mix_error_aside error;
  mix_error_set_aside(&error);
  mix_fail(
      error.status,
      "%s; the file is written, and not verified: onnxruntime reads it, whose library MIXTAPE_ONNXRUNTIME "
      "names",
      error.message);
}

static bool open_file(verification *v) {
  const char *version = mix_onnxruntime_version(), *named = getenv("MIXTAPE_ONNXRUNTIME");
  if (!version && named && *named)
    return mix_fail_io(
        "--verify: MIXTAPE_ONNXRUNTIME is '%s', which cannot be loaded as onnxruntime's library", named);
  if (version)
    v->session = mix_onnxruntime_open(v->path);
  else
    v->read = mix_model_load(v->path, .no_compile = true);
  if (v->read == NULL && mix_error() == MIX_UNSUPPORTED && !version) ask_for_onnxruntime();
  if (mix_failed()) return false;
  printf("%s: %lld rows by %s%s\n", v->what, (long long)v->rows,
         version ? "onnxruntime " : "mixtape's own reader (no library of onnxruntime is found)",
         version ? version : "");
  return true;
}

static int verify(verification *v) {
  if (!open_file(v)) return cli_fail();
  const int64_t batch = v->batch ? v->batch : BATCH;
  for (int64_t row = 0; row < v->rows && !mix_failed(); row += batch) {
    MIX_SCOPE { compare_rows(v, row, v->rows - row < batch ? v->rows - row : batch); }
  }
  mix_onnxruntime_close(v->session);
  return mix_failed() ? cli_fail() : report(v);
}

/* onnxruntime's kernels for processors lack bfloat16: the same export widened stands for it. */
static int verify_widened(verification *v, int opset) {
  char what[PATH + 64];
  snprintf(what, sizeof what, "%s, bfloat16 widened to float32", v->path);
  v->what = what;
  char path[PATH], beside[PATH + 8];
  if (snprintf(path, sizeof path, "%s.%ld.onnx", v->path, (long)getpid()) >= (int)sizeof path)
    mix_fail_value("%.200s...: the name is too long", v->path);
  else
    mix_model_export(v->model, path, .opset = opset, .widen = true, .batch = v->batch);
  if (mix_failed()) return cli_fail();
  v->path = path;
  const int code = verify(v);
  snprintf(beside, sizeof beside, "%s.data", path);
  unlink(beside);
  unlink(path);
  return code;
}

int cli_verify_onnx(mix_model *model, const char *path, const char *data, int opset, int batch) {
  const cli_options options = {.data = data, .batch_size = BATCH};
  verification v = {.model = model, .path = path, .what = path, .batch = batch};
  cli_data loaded;
  if (!cli_load_model_data(&options, CLI_PREDICT, model, &loaded) ||
      !take_inputs(&v, cli_part_to_test(&loaded)->x))
    return cli_fail();
  const mix_dtype lowest = lowest_dtype(mix_model_layers(model));
  v.bound = bound_of(lowest);
  return lowest == MIX_BFLOAT16 && mix_onnxruntime_version() ? verify_widened(&v, opset) : verify(&v);
}
