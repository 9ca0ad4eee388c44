/* Table latency: one example at a time. A call from C of a captured function on a tensor that is there, and
 * `predict_on_batch` from an array of the host's to another; each call is timed by itself. */
#include "cli/bench/layer_pass.h"
#include "tables.h"
#include <stdlib.h>
#include <time.h>

enum { MAX_CALLS = 200000, LSTM_STEPS = 128, LSTM_UNITS = 64 };

typedef struct example {
  const char *name;
  mix_model *(*build)(int64_t side);
  mix_shape shape; /* of one example; side 0 is that of the table */
} example;

static mix_model *dense(int64_t side) {
  (void)side;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(784));
  mix_tensor *y = mix_call(mix_dense(64, "relu"), mix_call(mix_dense(64, "relu"), x));
  return mix_model_new(x, mix_call(mix_dense(10), y));
}
static mix_model *lstm(int64_t side) {
  (void)side;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(LSTM_STEPS, LSTM_UNITS));
  return mix_model_new(x, mix_call(mix_lstm(LSTM_UNITS), x));
}
static mix_model *images(const char *name, int64_t side) {
  cli_options options;
  char *arguments[] = {"bench", "--model", (char *)name, NULL};
  if (cli_parse("bench", CLI_BENCH, 3, arguments, &options)) return NULL;
  options.image_size = side;
  return cli_compiled_model(&options, 0);
}
static mix_model *mobilenet(int64_t side) { return images("mobilenet_v2", side); }
static mix_model *resnet(int64_t side) { return images("resnet50", side); }

static const example examples[] = {{"dense 784-64-64-10", dense, {2, {1, 784}}},
                                   {"LSTM 64, 128 steps", lstm, {3, {1, LSTM_STEPS, LSTM_UNITS}}},
                                   {"MobileNetV2", mobilenet, {4, {1, 0, 0, 3}}},
                                   {"ResNet-50", resnet, {4, {1, 0, 0, 3}}}};

typedef struct request {
  mix_model *model;
  mix_function *function;
  mix_list *arguments;
  mix_shape shape;
  float *x, *y;
  int64_t results;
} request;

static bool call_function(request *r) {
  bool good = false;
  MIX_SCOPE { good = mix_function_call(r->function, r->arguments) != NULL; }
  return good;
}

static bool call_predict(request *r) {
  MIX_SCOPE {
    mix_list *y = mix_model_predict_on_batch(r->model, mix_tensor_from(r->x, MIX_FLOAT32, r->shape));
    if (y) mix_tensor_read(mix_list_get(y, 0), MIX_FLOAT32, r->y, r->results);
  }
  return mix_error() == MIX_OK;
}

static bool prepare(const example *e, int64_t side, request *r) {
  r->shape = e->shape;
  for (int i = 1; i < r->shape.rank; i++)
    if (!r->shape.dims[i]) r->shape.dims[i] = side;
  const int64_t count = mix_shape_size(r->shape);
  r->model = e->build(side);
  mix_tensor *x = r->model ? mix_random_uniform(mix_generator_new(1), r->shape, MIX_FLOAT32) : NULL;
  if (!x || mix_evaluate(1, &x)) return false;
  r->function = mix_function_new(bench_layer_forward, mix_model_layer(r->model), .name = e->name);
  r->arguments = mix_list_of(x);
  mix_list *results = mix_function_call(r->function, r->arguments);
  r->results = results ? mix_shape_size(mix_tensor_shape(mix_list_get(results, 0))) : 0;
  r->x = malloc(sizeof *r->x * (size_t)count);
  r->y = malloc(sizeof *r->y * (size_t)(r->results + 1));
  return r->x && r->y && results && mix_tensor_read(x, MIX_FLOAT32, r->x, count) == MIX_OK;
}

static double at(const double *sorted, int count, double share) {
  return 1e6 * sorted[(int)(share * (count - 1))];
}

/* Of all threads of the process: what other programs take does not count. */
static double cpu_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static json_t *measure(const example *e, const char *form, request *r, bool (*call)(request *),
                       const bench_settings *settings) {
  static double times[MAX_CALLS];
  const double limit = settings->quick ? 0.2 : 4;
  int count = 0;
  for (int i = 0; i < 3; i++)
    if (!call(r)) return NULL;
  const double cpu_begin = cpu_now();
  for (double begin = bench_now(), now = begin; count < MAX_CALLS && (count < 3 || now - begin < limit);) {
    if (!call(r)) return NULL;
    const double end = bench_now();
    times[count++] = end - now;
    now = end;
  }
  const double cpu = 1e6 * (cpu_now() - cpu_begin) / count;
  bench_median(times, count); /* sorts */
  const double p50 = at(times, count, 0.5), p99 = at(times, count, 0.99), p999 = at(times, count, 0.999);
  if (settings->text)
    printf("%-20s %-9s %10.2f %10.2f %10.2f %10.2f %9d\n", e->name, form, p50, p99, p999, cpu, count);
  return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:i}", "model", e->name, "form", form, "p50_microseconds",
                   p50, "p99_microseconds", p99, "p999_microseconds", p999, "cpu_microseconds", cpu, "calls",
                   count);
}

/* --export */
static bool export_model(const example *e, mix_model *model, const char *folder) {
  char path[1024];
  if (!folder) return true;
  snprintf(path, sizeof path, "%.900s/%s.onnx", folder, e->name);
  return mix_model_export(model, path) == MIX_OK;
}

static bool one(const example *e, const bench_settings *settings, json_t *rows) {
  request r = {0};
  bool good = prepare(e, settings->quick ? 32 : 224, &r);
  good = good && export_model(e, r.model, settings->options->output);
  json_t *function = good ? measure(e, "function", &r, call_function, settings) : NULL,
         *predict = function ? measure(e, "predict", &r, call_predict, settings) : NULL;
  if (function) json_array_append_new(rows, function);
  if (predict) json_array_append_new(rows, predict);
  free(r.x);
  free(r.y);
  return predict != NULL;
}

bool bench_latency(const bench_settings *settings) {
  json_t *rows = json_array();
  bool good = true;
  if (settings->text)
    printf("\none example, microseconds a call\n%-20s %-9s %10s %10s %10s %10s %9s\n", "model", "form", "p50",
           "p99", "p99.9", "CPU", "calls");
  for (size_t i = 0; i < sizeof examples / sizeof *examples && good; i++) {
    if (!bench_is_asked(settings, examples[i].name)) continue;
    MIX_SCOPE { good = one(&examples[i], settings, rows); }
    fflush(stdout);
  }
  json_object_set_new(settings->json, "latency", rows);
  return good;
}
