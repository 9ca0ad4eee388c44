/* Table update: RMSprop's rate of bytes beside that of memcpy. Memory bounds both. */
#include "memcpy_candidate.h"
#include "tables.h"
#include "update_candidate.h"

bool bench_update(const bench_settings *settings) {
  const int64_t rows = settings->quick ? 1024 : 4096;
  const size_t bytes = 4096 * (size_t)rows * sizeof(float);
  mix_generator *generator = mix_generator_new(3);
  mix_tensor *gradient = mix_random_uniform(generator, MIX_SHAPE(rows, 4096), MIX_FLOAT32);
  bench_update_step x;
  bench_memcpy y;
  bench_candidate runs[] = {{.run = bench_update_run, .context = &x},
                            {.run = bench_memcpy_run, .context = &y}};
  int rounds;
  bool good = bench_memcpy_prepare(&y, bytes, settings->threads) &&
              bench_update_prepare(&x, mix_rmsprop(), gradient, false);
  good = good && bench_interleave(runs, 2, settings->quick ? 0.5 : 3, &rounds);
  bench_memcpy_free(&y);
  if (!good) return false;
  /* The update reads gradient, slot and weight and writes slot and weight; memcpy reads and writes once. */
  const double moved = 5.0 * (double)bytes, copied = 2.0 * (double)bytes,
               share = moved / copied / bench_ratio(&runs[0], &runs[1], rounds);
  json_object_set_new(settings->json, "update",
                      json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "parameters", (json_int_t)rows * 4096,
                                "seconds", runs[0].median, "bytes_per_second", moved / runs[0].median,
                                "best_bytes_per_second", moved / runs[0].best, "memcpy_bytes_per_second",
                                copied / runs[1].median, "share_of_memcpy", share));
  if (settings->text)
    printf("\nRMSprop update of %.1f million parameters: %.3f ms, %.1f GB/s (best %.1f); memcpy %.1f GB/s "
           "(best %.1f); share %.2f\n",
           (double)rows * 4096e-6, 1e3 * runs[0].median, 1e-9 * moved / runs[0].median,
           1e-9 * moved / runs[0].best, 1e-9 * copied / runs[1].median, 1e-9 * copied / runs[1].best, share);
  return true;
}
