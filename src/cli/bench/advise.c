/* `mixtape bench --advise`: which layers of a model gain from mixed precision on this machine, which do not,
 * and why. */
#include "cli/bench/advice.h"
#include "backend/backend.h"
#include "base/alloc.h"
#include "base/format.h"
#include "base/json.h"
#include "cli/bench/bench.h"
#include "nn/layer/layer.h"
#include "tensor/shape.h"
#include <string.h>

enum { MAX_REASONS = 64, MIN_NAME = 14, MAX_NAME = 40 };

typedef struct totals {
  double wide, narrow;
} totals;

/* What is said about the layers of a model. */
typedef struct advised {
  const bench_settings *settings;
  json_t *rows;
  totals all;
  int width;  /* of the column of names */
  bool first; /* no layer with a product came yet */
  char reasons[MAX_REASONS][192];
  int reason_count;
  int rule;     /* sizes should be multiples of it */
  mix_text odd; /* those that are not */
} advised;

/* A reason in full the first time, then its number. */
static const char *reason(advised *a, const char *why, char *text, size_t size) {
  int i = 0;
  while (i < a->reason_count && strcmp(a->reasons[i], why)) i++;
  const bool new = i == a->reason_count;
  if (i == MAX_REASONS) return why;
  if (new) snprintf(a->reasons[a->reason_count++], sizeof a->reasons[0], "%s", why);
  snprintf(text, size, new ? "[%d] %s" : "[%d]", i + 1, why);
  return text;
}

static int name_width(mix_list *layers, int width) {
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    const int own = (int)mix_letters(MIX_PRINTABLE(layer->name));
    if (own > width) width = own < MAX_NAME ? own : MAX_NAME;
    width = name_width(mix_layer_layers(layer), width);
  }
  return width;
}

/* Ends in dots where it is longer than the column. */
static void fit_name(const char *name, int width, char *text, size_t size) {
  const char *whole = MIX_PRINTABLE(name);
  const bool cut = mix_letters(whole) > (size_t)width;
  const int bytes = (int)mix_letters_bytes(whole, (size_t)(cut ? width - 3 : width));
  snprintf(text, size, "%.*s%s", bytes, whole, cut ? "..." : "");
}

/* A pass that float32 does not have is "extra" and has no gain. */
static void print(advised *advised, const char *layer, const char *what, const bench_shape *s,
                  const bench_advice *a) {
  const bool extra = a->wide == 0;
  const double gain = extra ? 0 : a->wide / a->narrow;
  const char *verdict = extra ? "extra" : bench_advice_verdict(gain);
  json_t *row = json_pack("{s:s, s:s, s:o, s:s, s:s}", "layer", layer, "part", what, "gain",
                          extra ? json_null() : json_real(gain), "verdict", verdict, "why", a->why);
  if (a->kernel) mix_json_set(row, "kernel", json_string(a->kernel));
  if (s)
    mix_json_set(row, "shape", json_pack("[I, I, I]", (json_int_t)s->m, (json_int_t)s->n, (json_int_t)s->k));
  mix_json_append(advised->rows, row);
  if (!advised->settings->text) return;
  char shape[64] = "", ratio[16] = "", why[208];
  if (s)
    snprintf(shape, sizeof shape, "(%lld, %lld, %lld)", (long long)s->m, (long long)s->n, (long long)s->k);
  if (!extra) snprintf(ratio, sizeof ratio, "%.2fx", gain);
  char name[256];
  fit_name(layer, advised->width, name, sizeof name);
  printf("  %-*s %-20s %-20s %6s  %-6s %s\n", mix_column_bytes(name, advised->width), name, what, shape,
         ratio, verdict, reason(advised, a->why, why, sizeof why));
}

/* ---- layers of products ---- */

/* The product of a layer: rows of `inputs` numbers by a kernel (inputs, units). A convolution's rows are the
 * patches of its images. */
typedef struct layer_product {
  const char *name;
  mix_dtype dtype;
  int64_t rows, inputs, units;
  int64_t given;    /* numbers of its input */
  bool convolution; /* its kernels are not those of a product */
} layer_product;

static void note_size(advised *a, const char *layer, const char *what, int64_t size) {
  if (size % a->rule)
    mix_text_put(&a->odd, "%s%s %s %lld", a->odd.used ? ", " : "", MIX_PRINTABLE(layer), what,
                 (long long)size);
}

/* The update of the weights. Bytes a weight: RMSprop reads and writes slot and weight: 16. The 16-bit
 * copy: 2. Under loss scaling a gradient that waits for the finite test is written and read again: 2 + 2. */
static bench_advice advise_update(const layer_product *p, const bench_advice *gradient) {
  const double weights = (double)(p->inputs * p->units);
  const mix_context context = mix_context_default();
  const mix_backend *backend = context.backend;
  const bool waits = p->dtype == MIX_FLOAT16 &&
                     !(backend->prefers_speculation &&
                       backend->prefers_speculation(&context, (size_t)weights * 2,
                                                    (size_t)(2 * p->rows * (p->inputs + p->units))));
  bench_advice update = {.wide = bench_advice_of_update(16 * weights, gradient->wide),
                         .narrow = bench_advice_of_update((waits ? 22 : 18) * weights, gradient->narrow)};
  snprintf(update.why, sizeof update.why,
           "memory-bound: weights and slots stay float32, a 16-bit copy is written%s",
           waits ? ", the finite test comes between" : "");
  return update;
}

/* The three products and the update. */
static void advise_product(advised *advised, const layer_product *p) {
  const struct {
    const char *what;
    bench_shape shape;
  } products[] = {{"forward", {0, 0, p->rows, p->units, p->inputs}},
                  {"gradient of kernel", {1, 0, p->inputs, p->units, p->rows}},
                  {"gradient of input", {0, 1, p->rows, p->inputs, p->units}}};
  totals layer = {0, 0};
  if (advised->first) {
    bench_advice cast = {.narrow = bench_advice_of_bytes(6.0 * (double)p->given),
                         .why = "the batch comes in float32: a pass that float32 does without"};
    print(advised, p->name, "cast of the batch", NULL, &cast);
    layer.narrow += cast.narrow;
  }
  enum { GRADIENT = 1 };
  bench_advice a[3];
  for (int i = 0; i < (advised->first ? 2 : 3); i++) {
    bench_advise_product(&products[i].shape, p->dtype, &a[i]);
    if (p->convolution) a[i].kernel = NULL;
    print(advised, p->name, products[i].what, &products[i].shape, &a[i]);
    layer.wide += a[i].wide, layer.narrow += a[i].narrow;
  }
  const bench_advice update = advise_update(p, &a[GRADIENT]);
  print(advised, p->name, "update", NULL, &update);
  layer.wide += update.wide, layer.narrow += update.narrow;
  bench_advice whole = {.wide = layer.wide, .narrow = layer.narrow};
  snprintf(whole.why, sizeof whole.why, "the layer, all of the above%s",
           p->convolution ? ", estimated as products of patches" : "");
  print(advised, p->name, "all", NULL, &whole);
  advised->all.wide += layer.wide, advised->all.narrow += layer.narrow;
}

/* The numbers of an example of that shape; -1: not all sizes are known. */
static int64_t numbers_of(mix_shape shape) {
  int64_t numbers = 1;
  for (int i = 1; i < shape.rank; i++)
    numbers = shape.dims[i] < 0 || numbers < 0 ? -1 : numbers * shape.dims[i];
  return numbers;
}

/* Dense, on each row of what comes before the last axis; sequences of unknown length count as one row. */
static bool is_dense(const mix_layer *layer, mix_shape kernel, int64_t batch, layer_product *p) {
  if (strcmp(mix_layer_class_name(layer), "Dense")) return false;
  const int64_t numbers = layer->build_count ? numbers_of(layer->build_shapes[0]) : -1;
  p->inputs = kernel.dims[0], p->units = kernel.dims[1];
  p->rows = batch * (numbers > 0 ? numbers / p->inputs : 1);
  p->given = p->rows * p->inputs;
  return true;
}

/* Conv1D, Conv2D and Conv3D with one group and images of known size. */
static bool is_convolution(mix_layer *layer, mix_shape kernel, int64_t batch, layer_product *p) {
  static const char *const classes[] = {"Conv1D", "Conv2D", "Conv3D"};
  bool found = false;
  for (int i = 0; i < 3; i++) found |= !strcmp(mix_layer_class_name(layer), classes[i]);
  if (!found || !layer->build_count) return false;
  const mix_shape in = layer->build_shapes[0], out = mix_layer_output_shape(layer, in);
  const int64_t channels = kernel.dims[kernel.rank - 2], given = numbers_of(in), made = numbers_of(out);
  if (given < 0 || made < 0 || (in.dims[in.rank - 1] != channels && in.dims[1] != channels)) return false;
  p->convolution = true;
  p->units = kernel.dims[kernel.rank - 1];
  p->inputs = mix_shape_size(kernel) / p->units;
  p->rows = batch * (made / p->units);
  p->given = batch * given;
  return true;
}

static void advise_layer(advised *advised, mix_layer *layer) {
  const char *name = mix_layer_name(layer), *class = mix_layer_class_name(layer);
  const mix_dtype dtype = mix_layer_compute_dtype(layer);
  const bool narrow = dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
  mix_list *weights = mix_layer_weights(layer);
  layer_product p = {.name = name, .dtype = dtype};
  mix_shape kernel = {0};
  if (mix_list_count(weights)) kernel = mix_variable_shape(mix_list_get(weights, 0));
  const int64_t batch = advised->settings->batch;
  const bool product =
      kernel.rank >= 2 && (is_dense(layer, kernel, batch, &p) || is_convolution(layer, kernel, batch, &p));
  if (product && narrow) {
    note_size(advised, name, p.convolution ? "filters" : "units", p.units);
    advise_product(advised, &p);
  } else {
    bench_advice a = {.wide = 1, .narrow = 1};
    snprintf(a.why, sizeof a.why,
             !narrow                   ? "computes in %s, as its policy says"
             : mix_list_count(weights) ? "not estimated: only Dense layers and convolutions of one group are"
                                       : "element-wise: fused with its neighbours",
             mix_dtype_name(dtype));
    print(advised, name, class, NULL, &a);
  }
  advised->first = advised->first && !product;
}

static void advise_layers(advised *advised, mix_list *layers) {
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    mix_list *inner = mix_layer_layers(layer);
    if (mix_list_count(inner))
      advise_layers(advised, inner);
    else
      advise_layer(advised, layer);
  }
}

/* ---- a policy ---- */

/* `*policy` NULL: that of the file, which it becomes. */
static mix_model *model_under(const bench_settings *settings, const char **policy) {
  cli_options options = *settings->options;
  options.policy = *policy;
  if (!cli_is_model_file(&options) && mix_set_global_policy(*policy) != MIX_OK) return NULL;
  mix_model *model = cli_make_model(&options, CLI_NOT_COMPILED, 0);
  *policy = options.policy;
  return model;
}

static void print_sizes(const advised *a) {
  const long long batch = a->settings->batch;
  const bool odd_batch = batch % a->rule;
  if (!a->odd.used && !odd_batch) return;
  printf("  sizes should be multiples of %d (units, filters, batch), which are not: %s", a->rule,
         a->odd.used ? a->odd.text : "");
  if (odd_batch) printf("%sthe batch %lld", a->odd.used ? ", " : "", batch);
  printf("\n");
}

static bool advise_policy(const bench_settings *settings, const char *policy, json_t *advice) {
  mix_model *model = model_under(settings, &policy);
  if (!model) return false;
  advised advised = {.settings = settings,
                     .rows = json_array(),
                     .all = {bench_advice_rest(), bench_advice_rest()},
                     .rule = bench_advice_rule(),
                     .first = true,
                     .odd = {.grows = true}};
  if (settings->text)
    printf("\nadvice for %s under %s, batch %lld: float32's time over the policy's, by rules drawn from "
           "%s\n",
           cli_is_guide(settings->options) ? "the guide's model" : settings->options->model, policy,
           (long long)settings->batch, bench_advice_source());
  advised.width = name_width(mix_model_layers(model), MIN_NAME);
  advise_layers(&advised, mix_model_layers(model));
  const bool good = mix_error() == MIX_OK && !advised.odd.failed;
  const totals all = advised.all;
  const double gain = all.narrow > 0 ? all.wide / all.narrow : 1;
  mix_json_append(advice,
                  json_pack("{s:s, s:I, s:o, s:f, s:s, s:s}", "policy", policy, "batch_size",
                            (json_int_t)settings->batch, "rows", advised.rows, "step_gain", gain, "verdict",
                            bench_advice_verdict(gain), "sizes", advised.odd.used ? advised.odd.text : ""));
  if (settings->text) print_sizes(&advised);
  if (settings->text) printf("  the whole step: %.2fx, %s\n", gain, bench_advice_verdict(gain));
  mix_free(advised.odd.text);
  return good;
}

/* Has the file a 16-bit policy, which no option changes? */
static bool has_own_policy(const bench_settings *settings) {
  if (!cli_is_model_file(settings->options)) return false;
  bool own = false;
  const char *policy = NULL;
  MIX_SCOPE { own = model_under(settings, &policy) && strcmp(policy, "float32"); }
  return own;
}

/* --policy float32, the default, asks about both mixed policies, or about that of the file. */
bool bench_advise(const bench_settings *given) {
  static const char *const mixed[] = {"mixed_float16", "mixed_bfloat16"};
  bench_settings settings = *given;
  if (!settings.batch) settings.batch = 128;
  json_t *advice = json_array();
  mix_json_set(settings.json, "advice", advice);
  bool good = true;
  if (settings.policy && strcmp(settings.policy, "float32"))
    good = advise_policy(&settings, settings.policy, advice);
  else if (has_own_policy(&settings))
    good = advise_policy(&settings, NULL, advice);
  else
    for (int i = 0; i < 2 && good; i++)
      good = mix_error() == MIX_OK && advise_policy(&settings, mixed[i], advice);
  if (settings.text)
    printf("`mixtape bench%s measures what is estimated here.\n",
           cli_is_guide(settings.options) ? " --only steps`" : " --model FILE`");
  return good;
}
