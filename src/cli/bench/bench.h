/* Tables of `mixtape bench`. The program in bench/ runs them too. */
#pragma once

#include "cli/cli.h"
#include <jansson.h>
#include <string.h>

typedef struct bench_settings {
  int threads;
  bool quick, text;           /* text: print tables */
  const char *policy;         /* of --advise */
  const cli_options *options; /* the model and its sizes */
  int64_t units, batch;       /* 0: the table's own models */
  json_t *json;               /* each table adds one member */
  bool *row_found;            /* set once a row is what --rows asks for */
} bench_settings;

/* False with the error recorded, or printed to standard error. */
typedef bool bench_run_table(const bench_settings *settings);
typedef struct bench_table {
  const char *name;
  bench_run_table *run;
} bench_table;

bench_run_table bench_steps, bench_layers, bench_pipeline, bench_advise, bench_model_steps;

/* Whether --rows, if it is given, is found in the name. */
static inline bool bench_is_asked(const bench_settings *settings, const char *name) {
  const bool asked = !settings->options->rows || strstr(name, settings->options->rows);
  *settings->row_found |= asked;
  return asked;
}

/* Sets up the library as the options say, prints what machine this is, and runs the tables, or only the one
 * named `only` if that is not NULL. Returns the exit code. */
int bench_run(const cli_options *options, const bench_table *tables, int count, const char *only);
