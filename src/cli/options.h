/* The table of the command line's options, for those who parse them. */
#pragma once

#include "cli/cli.h"

typedef enum cli_option_kind {
  TEXT,
  PATH,
  CHOICE,
  DEVICE, /* a choice, or xla: with a path */
  MEMORY, /* a choice, or an amount of bytes */
  MODEL,
  COUNT,
  LEVEL,
  SEED,
  FIRST_SEED, /* 0 is the default of precision tuning */
  THREADS,
  FREQUENCY,
  FRACTION,
  NUMBER, /* 0 is MIX_ZERO */
  GIGABYTES,
  FLAG,
  RESUME,
  SCALE,
  DATA,
  CLASS_WEIGHTS,
  CALLBACK,
  LAYERS,
  REMAT
} cli_option_kind;

typedef struct cli_option_row {
  const char *name;
  cli_option_kind kind;
  size_t field;
  int commands;
  const char *argument; /* as shown by --help; for CHOICE the choices, separated by | */
  const char *help;
  const char *initial; /* the default of a text; CHOSEN_BY_FILE: not beside a model from a file */
  enum { ALWAYS, CHOSEN_BY_FILE } when;
} cli_option_row;

#define FIELD(name) offsetof(cli_options, name)
#define RUNS (CLI_TRAIN | CLI_EVALUATE | CLI_PREDICT | CLI_NUMERICS | CLI_TUNE | CLI_COMPILE)
#define TRAINS (CLI_TRAIN | CLI_NUMERICS | CLI_TUNE | CLI_COMPILE)

/* option_rows.c */
enum { CLI_OPTION_ROWS = 93 };
extern const cli_option_row cli_option_rows[];

/* option_values.c: reads the value into its member. False after a message on standard error. */
bool cli_set_option(const char *command, const cli_option_row *row, const char *value, cli_options *options);

/* option_conflicts.c: what --dtype is short for; options that exclude or require each other. False after a
 * message on standard error. */
bool cli_take_dtype(const char *command, cli_options *options);
bool cli_options_agree(const char *command, const cli_options *options);
