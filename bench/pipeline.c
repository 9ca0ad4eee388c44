/* Table pipeline: an epoch of fit on arrays beside epochs on data sets with map and prefetch. It takes the
 * guide's small model, whose steps are the shortest. */
#include "base/alloc.h"
#include "tables.h"

enum { WIDTH = 784, CLASSES = 10, INPUTS = 5 };

/* Arrays (x, y), or a data set of batches. */
typedef struct input {
  const char *name;
  mix_model *model;
  mix_tensor *x, *y;
  mix_dataset *dataset;
  int64_t batch;
} input;

static bool run_epoch(void *context) {
  input *f = context;
  bool good = false;
  MIX_SCOPE {
    good = (f->dataset
                ? mix_model_fit(f->model, f->dataset, NULL, .verbose = MIX_SILENT)
                : mix_model_fit(f->model, f->x, f->y, .batch_size = f->batch, .verbose = MIX_SILENT)) != NULL;
  }
  return good;
}

/* Bytes to numbers in [0, 1]. The guide does it with all images beforehand. */
static mix_list *normalise(void *context, mix_list *element) {
  (void)context;
  mix_tensor *x = mix_divide(mix_cast(mix_list_get(element, 0), MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
  return mix_list_of(x, mix_list_get(element, 1));
}
static mix_model *make_model(int64_t units) {
  cli_options options;
  char *arguments[] = {"bench", NULL};
  if (cli_parse("bench", CLI_BENCH, 1, arguments, &options)) return NULL;
  options.units = units;
  mix_model *model = cli_build_named_model(&options, WIDTH);
  return model && cli_compile(&options, model) == MIX_OK ? model : NULL;
}

static bool make_inputs(input *inputs, int64_t units, int64_t batch, int64_t rows) {
  unsigned char *bytes = mix_alloc((size_t)(rows * WIDTH));
  int64_t *labels = mix_alloc((size_t)rows * sizeof *labels);
  if (!bytes || !labels) return false;
  for (int64_t i = 0; i < rows * WIDTH; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 24);
  for (int64_t i = 0; i < rows; i++) labels[i] = i * 7 % CLASSES;
  mix_tensor *images = mix_tensor_from(bytes, MIX_UINT8, MIX_SHAPE(rows, WIDTH)),
             *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(rows));
  mix_free(bytes);
  mix_free(labels);
  mix_tensor *x = mix_divide(mix_cast(images, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
  if (mix_evaluate(1, &x) != MIX_OK) return false;
  mix_dataset *floats = mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(x, y), rows), batch);
  mix_dataset *whole =
      mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(images, y), rows), batch);
  mix_dataset *each = mix_dataset_map(mix_dataset_shuffle(mix_dataset_from_tensors(images, y), rows),
                                      normalise, .num_parallel_calls = -1);
  inputs[0] = (input){.name = "arrays", .x = x, .y = y};
  inputs[1] = (input){.name = "shuffle, batch, prefetch", .dataset = mix_dataset_prefetch(floats, -1)};
  inputs[2] = (input){.name = "shuffle, batch, map, prefetch",
                      .dataset = mix_dataset_prefetch(mix_dataset_map(whole, normalise), -1)};
  inputs[3] = (input){
      .name = "shuffle, batch, map (-1), prefetch",
      .dataset = mix_dataset_prefetch(mix_dataset_map(whole, normalise, .num_parallel_calls = -1), -1)};
  inputs[4] = (input){.name = "shuffle, map of images (-1), batch, prefetch",
                      .dataset = mix_dataset_prefetch(mix_dataset_batch(each, batch), -1)};
  for (int i = 0; i < INPUTS; i++) {
    inputs[i].batch = batch;
    if (!(inputs[i].model = make_model(units))) return false;
  }
  return true;
}

bool bench_pipeline(const bench_settings *settings) {
  const int64_t units = settings->units ? settings->units : 64,
                batch = settings->batch ? settings->batch : 128;
  const int64_t steps = settings->quick ? 20 : 100;
  static input inputs[INPUTS];
  static bench_candidate runs[INPUTS];
  if (!make_inputs(inputs, units, batch, steps * batch)) return false;
  for (int i = 0; i < INPUTS; i++)
    runs[i] = (bench_candidate){.run = run_epoch, .context = &inputs[i], .repeats = 1};
  int rounds;
  if (!bench_interleave(runs, INPUTS, settings->quick ? 1 : 15, &rounds)) return false;
  if (settings->text)
    printf("\nepochs of %lld steps, %lld units, batch %lld, fed by; %d interleaved rounds\n"
           "%-46s %10s %10s %14s\n",
           (long long)steps, (long long)units, (long long)batch, rounds, "", "median us", "best us",
           "rate to arrays");
  json_t *rows = json_array();
  for (int i = 0; i < INPUTS; i++) {
    const double ratio = bench_ratio(&runs[0], &runs[i], rounds);
    json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f}", "fed_by", inputs[i].name, "step_seconds",
                                          runs[i].median / (double)steps, "best_step_seconds",
                                          runs[i].best / (double)steps, "rate_to_arrays", ratio));
    if (settings->text)
      printf("%-46s %10.1f %10.1f %14.3f\n", inputs[i].name, 1e6 * runs[i].median / (double)steps,
             1e6 * runs[i].best / (double)steps, ratio);
  }
  return json_object_set_new(settings->json, "pipeline",
                             json_pack("{s:I, s:I, s:I, s:i, s:o}", "units", (json_int_t)units, "batch_size",
                                       (json_int_t)batch, "steps", (json_int_t)steps, "rounds", rounds,
                                       "feeds", rows)) == 0;
}
