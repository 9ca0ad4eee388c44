/* An optimizer's update is bound by memory: RMSprop's rate of bytes beside that of memcpy on the same threads. */
#include "base/alloc.h"
#include "bench.h"
#include "cli/cli.h"
#include <omp.h>
#include <string.h>

typedef struct update {
  mix_optimizer *optimizer;
  mix_variable *variable;
  mix_function *function;
  mix_list *arguments;
  bool copies; /* something of the step reads the weight in float16 */
} update;

typedef struct copy {
  char *from, *to;
  size_t bytes;
  int threads;
} copy;

static mix_list *update_body(void *context, mix_list *arguments) {
  update *x = context;
  mix_tensor *half = x->copies ? mix_cast(mix_variable_value(x->variable), MIX_FLOAT16) : NULL;
  mix_tensor *used = half ? mix_slice(half, MIX_SHAPE(0, 0), MIX_SHAPE(1, 1)) : NULL;
  mix_optimizer_apply_gradients(x->optimizer, arguments, mix_list_of(x->variable));
  return used ? mix_list_of(used) : NULL;
}

/* NULL in `gradient`: false. */
static bool prepare(update *x, mix_tensor *gradient, int64_t rows) {
  x->optimizer = mix_rmsprop();
  x->variable = mix_variable_new(mix_fill(MIX_SHAPE(rows, 4096), 0.5, MIX_FLOAT32));
  x->function = mix_function_new(update_body, x, .name = "update");
  x->arguments = mix_list_of(gradient);
  return gradient && mix_evaluate(1, &gradient) == MIX_OK && mix_optimizer_build(x->optimizer, mix_list_of(x->variable)) == MIX_OK;
}

static bool run_update(void *context) {
  update *x = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(x->function, x->arguments) != NULL; }
  return good;
}

static bool run_copy(void *context) {
  const copy *x = context;
#pragma omp parallel num_threads(x->threads)
  {
    const size_t share = x->bytes / (size_t)x->threads / 64 * 64, begin = share * (size_t)omp_get_thread_num();
    const size_t end = omp_get_thread_num() + 1 == omp_get_num_threads() ? x->bytes : begin + share;
    memcpy(x->to + begin, x->from + begin, end - begin);
  }
  return true;
}

bool bench_update(const bench_settings *settings) {
  const int64_t rows = settings->quick ? 1024 : 4096;
  const size_t bytes = 4096 * (size_t)rows * sizeof(float);
  mix_generator *generator = mix_generator_new(3);
  mix_tensor *gradient = mix_random_uniform(generator, MIX_SHAPE(rows, 4096), MIX_FLOAT32);
  update x = {.copies = false};
  copy y = {.from = mix_alloc_buffer(bytes), .to = mix_alloc_buffer(bytes), .bytes = bytes, .threads = settings->threads};
  bench_contestant runs[] = {{.run = run_update, .context = &x}, {.run = run_copy, .context = &y}};
  int rounds;
  bool good = y.from && y.to && prepare(&x, gradient, rows);
  if (good) memset(y.from, 1, bytes);
  good = good && bench_interleave(runs, 2, settings->quick ? 0.5 : 3, &rounds);
  mix_free_buffer(y.from, bytes);
  mix_free_buffer(y.to, bytes);
  if (!good) return false;
  /* Reads gradient, slot and weight, writes slot and weight; the copy reads and writes once. */
  const double moved = 5.0 * (double)bytes, copied = 2.0 * (double)bytes,
               share = moved / copied / bench_ratio(&runs[0], &runs[1], rounds);
  json_object_set_new(settings->json, "update",
                      json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "parameters", (json_int_t)rows * 4096, "seconds", runs[0].median,
                                "bytes_per_second", moved / runs[0].median, "best_bytes_per_second", moved / runs[0].best,
                                "memcpy_bytes_per_second", copied / runs[1].median, "share_of_memcpy", share));
  if (settings->text)
    printf(
        "\nRMSprop update of %.1f million parameters: %.3f ms, %.1f GB/s (best %.1f); memcpy %.1f GB/s (best %.1f); share %.2f\n",
        (double)rows * 4096e-6, 1e3 * runs[0].median, 1e-9 * moved / runs[0].median, 1e-9 * moved / runs[0].best,
        1e-9 * copied / runs[1].median, 1e-9 * copied / runs[1].best, share);
  return true;
}

bool bench_update_copy(const bench_settings *settings, double *ratio) {
  const int64_t rows = settings->quick ? 1024 : 4096;
  mix_generator *generator = mix_generator_new(3);
  mix_tensor *gradient = mix_random_uniform(generator, MIX_SHAPE(rows, 4096), MIX_FLOAT32);
  static update x[2];
  static bench_contestant runs[2];
  for (int i = 0; i < 2; i++) {
    x[i] = (update){.copies = i == 1};
    if (!prepare(&x[i], gradient, rows)) return false;
    runs[i] = (bench_contestant){.run = run_update, .context = &x[i]};
  }
  int rounds;
  if (!bench_interleave(runs, 2, settings->quick ? 0.3 : 3, &rounds)) return false;
  *ratio = bench_ratio(&runs[1], &runs[0], rounds);
  return true;
}
