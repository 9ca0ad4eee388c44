/* Inside a learning rate schedule: its kind, which is also what configs say of it, and its numbers. */
#ifndef MIX_OPTIM_SCHEDULE_H
#define MIX_OPTIM_SCHEDULE_H

#include "base/object.h"
#include <jansson.h>
#include <mixtape/schedule.h>

enum { MIX_SCHEDULE_PARAMETERS = 5 };

typedef struct mix_schedule_parameter {
  const char *name; /* Keras's; NULL ends the list */
  bool optional;
  double default_value;
  bool steps; /* a number of steps: an integer in configs */
} mix_schedule_parameter;

typedef struct mix_schedule_kind {
  const char *class_name;
  const char *default_name; /* keras3's default for `name` */
  /* The learning rate at a step: in floatx, for piecewise constants as it is given. */
  mix_tensor *(*call)(const mix_schedule *schedule, mix_tensor *step);
  mix_schedule_parameter parameters[MIX_SCHEDULE_PARAMETERS]; /* none: boundaries and values */
  const char *flag;                                           /* "staircase", "cycle"; NULL: none */
} mix_schedule_kind;

extern const mix_schedule_kind mix_schedule_exponential, mix_schedule_inverse_time, mix_schedule_polynomial, mix_schedule_piecewise,
    mix_schedule_cosine, mix_schedule_cosine_restarts;
/* All of them, ended by NULL. */
extern const mix_schedule_kind *const mix_schedule_kinds[];

struct mix_schedule {
  mix_object object;
  const mix_schedule_kind *kind; /* NULL: the caller's function */
  const char *name;              /* interned; NULL: none given */
  double parameters[MIX_SCHEDULE_PARAMETERS];
  bool flag;
  int count; /* boundaries */
  double *boundaries, *values;
  mix_tensor *(*function)(void *context, mix_tensor *step);
  void *context;
  char *text; /* the latest config */
};
extern const mix_class mix_schedule_class;

/* A schedule of a kind with parameters, checked; scoped. */
mix_schedule *mix_schedule_new(const mix_schedule_kind *kind, const double parameters[MIX_SCHEDULE_PARAMETERS], bool flag);

/* {"class_name", "config", ...} as a new jansson reference; TypeError for a function. */
json_t *mix_schedule_to_json(const mix_schedule *schedule, const mix_semantics *semantics);
mix_schedule *mix_schedule_from_json(const json_t *json);

#endif
