/* The learning rate schedule object, and its kinds with the parameters that configs hold. */
#pragma once

#include "base/object.h"
#include "nn/fields.h"
#include <mixtape/schedule.h>

enum { MIX_SCHEDULE_PARAMETERS = 5 };

/* The parameters of any kind. */
typedef struct mix_schedule_options {
  const char *name; /* interned; NULL: none was given */
  double parameters[MIX_SCHEDULE_PARAMETERS];
  bool flag;        /* staircase, cycle */
  mix_numbers boundaries, values;
} mix_schedule_options;

typedef struct mix_schedule_kind {
  const char *class_name;
  const char *default_name; /* keras3's default for `name` */
  /* The learning rate at a step. The step is in floatx, for piecewise constants in its own dtype. */
  mix_tensor *(*call)(const mix_schedule_options *options, mix_tensor *step);
  mix_field_row fields[MIX_SCHEDULE_PARAMETERS + 2]; /* of the options, as configs hold them */
} mix_schedule_kind;

extern const mix_schedule_kind mix_schedule_exponential, mix_schedule_inverse_time, mix_schedule_polynomial,
    mix_schedule_piecewise, mix_schedule_cosine, mix_schedule_cosine_restarts;
/* All kinds, ended by NULL. */
extern const mix_schedule_kind *const mix_schedule_kinds[];

struct mix_schedule {
  mix_object object;
  const mix_schedule_kind *kind; /* NULL: a user's function */
  mix_schedule_options options;
  mix_tensor *(*function)(void *context, mix_tensor *step);
  void *context;
  char *text; /* the latest config */
};
extern const mix_class mix_schedule_class;

/* A schedule of a kind, from options with their defaults. Copies the lists. Scoped. */
mix_schedule *mix_schedule_new(const mix_schedule_kind *kind, const mix_schedule_options *options);
/* The row of the name, which ends every config. */
extern const mix_field_row mix_schedule_name_field[];

/* {"class_name", "config", ...} as a new jansson reference; TypeError for a user's function. */
json_t *mix_schedule_to_json(const mix_schedule *schedule, const mix_semantics *semantics);
mix_schedule *mix_schedule_from_json(const json_t *json);
