/* Tables that only the benchmark program has, one file each. The others are in src/cli/bench/. */
#ifndef BENCH_TABLES_H
#define BENCH_TABLES_H

#include "cli/bench/bench.h"
#include "cli/bench/comparison.h"

bench_run_table bench_start, bench_dispatch, bench_update, bench_optimizers, bench_memory_passes,
    bench_compile, bench_products, bench_convolutions, bench_embedding, bench_threads, bench_loading,
    bench_simulated, bench_figures, bench_stored, bench_lora, bench_memory, bench_decoding, bench_latency,
    bench_hub, bench_frozen;

/* Number of steps in the plan of the function's latest call that have a value of that shape,
 * "(1024, 4096)". */
int bench_passes_over(mix_function *function, const char *shape);

/* hub_model.c: KerasHub's GPT-2 small, or BERT base as a classifier, with new weights. NULL with the error.
 */
mix_model *bench_hub_model(const bench_settings *settings, bool bert, const char *policy);
/* The tokens that it knows. */
int64_t bench_hub_words(const bench_settings *settings, bool bert);

typedef bool bench_measure_row(const bench_settings *settings, const void *row, const char *policy,
                               json_t *results);
/* by_policy.c: calls measure for each row that --rows asks for, in float32 and mixed_bfloat16. `rows`:
 * structs of `size` bytes that begin with their names. */
bool bench_time_by_policy(const bench_settings *settings, const void *rows, size_t size, size_t count,
                          bench_measure_row *measure, json_t *results);

#endif
