/* Tables of `mixtape bench`. The program in bench/ runs them too, with other libraries as peers. */
#ifndef MIX_CLI_BENCH_BENCH_H
#define MIX_CLI_BENCH_BENCH_H

#include "cli/bench/comparison.h"
#include "cli/bench/product_candidate.h"
#include "cli/cli.h"
#include <jansson.h>

/* Products of another library, beside which the table figures puts ours. */
typedef struct bench_peer {
  const char *figure, *label; /* the figure's name; the title of its column */
  mix_dtype dtype;
  double at_least; /* goal for its time over ours */
  /* False: it is not installed or has no such product. */
  bool (*present)(bench_product *product);
  bool (*run)(void *product); /* as bench_candidate.run */
} bench_peer;

enum { BENCH_MAX_PEERS = 4 };
typedef struct bench_peers {
  void (*load)(int threads); /* called before `present` */
  int count;
  const bench_peer *list;
} bench_peers;

typedef struct bench_settings {
  int threads;
  bool quick, text;           /* text: print tables */
  const char *policy;         /* of --advise */
  const char *model;          /* a file or a name; NULL: the guide's model */
  const cli_options *options; /* sizes of a model by name */
  int64_t units, batch;       /* 0: the table's own models */
  const bench_peers *peers;   /* NULL: none */
  json_t *json;               /* each table adds one member */
} bench_settings;

/* False with the error recorded, or printed to standard error. */
typedef bool bench_run_table(const bench_settings *settings);
typedef struct bench_table {
  const char *name;
  bench_run_table *run;
} bench_table;

/* layer_row.c: rows of the table layers, one pass of one layer under three policies. */
enum { BENCH_LAYER_POLICIES = 3 };
extern const char *const bench_layer_policies[BENCH_LAYER_POLICIES];
typedef struct bench_layer_pass {
  const char *layer;
  int64_t batch;
  bool backward;
} bench_layer_pass;
/* Runs a candidate for each policy, interleaved, prints the row and appends it. */
bool bench_layer_row(const bench_settings *settings, const bench_layer_pass *pass, bench_candidate *runs,
                     json_t *results);
/* attention_layers.c: appends its rows to the table. */
bool bench_attention_layers(const bench_settings *settings, json_t *results);

bench_run_table bench_steps, bench_layers, bench_figures, bench_advise, bench_model_steps;

/* Sets up the library as the options say, prints what machine this is, and runs the tables, or only the one
 * named `only` if that is not NULL. Returns the exit code. */
int bench_run(const cli_options *options, const bench_peers *peers, const bench_table *tables, int count,
              const char *only);

#endif
