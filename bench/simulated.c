/* Table simulated: rounding of a matrix to a simulated format and back, on one thread, by the kernel of the
 * processor beside the reference kernel, interleaved. */
#include "tables.h"

#include "backend/cpu/kernels.h"
#include "backend/ref/ref.h"
#include "base/processor.h"
#include "ops/block_quantize.h"
#include <stdlib.h>

enum { ROWS = 1024, WIDTH = 1024, FORMATS = 7 };

static const struct {
  const char *name;
  mix_block_attributes attributes;
} formats[FORMATS] = {
    {"mxfp8", {.format = MIX_BLOCK_MXFP8}},
    {"mxfp8, other axis", {.format = MIX_BLOCK_MXFP8, .axis = -1}},
    {"mxfp8, stochastic", {.format = MIX_BLOCK_MXFP8, .gradient = true, .stochastic = true}},
    {"nvfp4", {.format = MIX_BLOCK_NVFP4}},
    {"nvfp4, other axis", {.format = MIX_BLOCK_NVFP4, .axis = -1}},
    {"nvfp4, stochastic", {.format = MIX_BLOCK_NVFP4, .gradient = true, .stochastic = true}},
    {"float8-current", {.format = MIX_BLOCK_FLOAT8_CURRENT}}};

typedef struct run_of_kernel {
  const mix_kernel *kernel;
  mix_kernel_args *args;
} run_of_kernel;

static bool run(void *context) {
  run_of_kernel *r = context;
  r->kernel->run(r->args, &mix_team_alone);
  return true;
}

static const mix_kernel *kernel_here(void) {
  const mix_kernel *const *kernel = mix_cpu_block_quantize_kernels;
  while (*kernel && ((*kernel)->needs & ~mix_cpu_features())) kernel++;
  return *kernel;
}

static bool one_format(const bench_settings *settings, int f, mix_kernel_args *args, json_t *rows) {
  static bench_candidate runs[2];
  mix_block_attributes attributes = formats[f].attributes;
  attributes.axis++, attributes.count = 1, attributes.groups = 1;
  args->attributes = &attributes;
  run_of_kernel reference = {&mix_ref_block_quantize, args}, here = {kernel_here(), args};
  int rounds;
  runs[0] = (bench_candidate){.run = run, .context = &reference};
  runs[1] = (bench_candidate){.run = run, .context = &here};
  if (!bench_interleave(runs, 2, settings->quick ? 0.2 : 1, &rounds)) return false;
  const double ratio = bench_ratio(&runs[0], &runs[1], rounds), elements = ROWS * WIDTH;
  json_array_append_new(rows,
                        json_pack("{s:s, s:f, s:f, s:f}", "format", formats[f].name, "reference_seconds",
                                  runs[0].median, "seconds", runs[1].median, "ratio", ratio));
  if (settings->text)
    printf("%-20s %10.2f %10.2f %8.2f\n", formats[f].name, 1e9 * runs[0].median / elements,
           1e9 * runs[1].median / elements, ratio);
  return true;
}

bool bench_simulated(const bench_settings *settings) {
  static char workspace[4096];
  static uint16_t x[ROWS * WIDTH], y[ROWS * WIDTH];
  const mix_type type = {.dtype = MIX_BFLOAT16, .shape = MIX_SHAPE(ROWS, WIDTH)};
  const void *inputs[] = {x};
  void *outputs[] = {y};
  mix_kernel_args args = {.op = &mix_op_block_quantize,
                          .input_count = 1,
                          .output_count = 1,
                          .input_types = &type,
                          .output_types = &type,
                          .inputs = inputs,
                          .outputs = outputs,
                          .workspace = workspace};
  for (int i = 0; i < ROWS * WIDTH; i++) /* magnitudes between 2^-8 and 8 */
    x[i] = (uint16_t)((i * 40503 & 0x8000) | (0x3b80 + (uint32_t)i * 2654435761u % 1408));
  json_t *rows = json_array();
  bool good = true;
  if (settings->text)
    printf("\nrounding a matrix of %d x %d to a simulated format, one thread, interleaved\n"
           "%-20s %10s %10s %8s\n",
           ROWS, WIDTH, "format", "ref ns/el", "ns/element", "ratio");
  for (int f = 0; f < FORMATS && good; f++) good = one_format(settings, f, &args, rows);
  json_object_set_new(settings->json, "simulated", rows);
  return good;
}
