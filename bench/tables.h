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

#endif
