/* The optimizer object, its class, and the pending assignments of one update. */
#pragma once

#include "graph/variable.h"
#include "nn/fields.h"
#include <mixtape/schedule.h>
#include <regex.h>

/* The fields that every options struct begins with. */
typedef struct mix_optimizer_common {
  MIX_OPTIMIZER_FIELDS
} mix_optimizer_common;

/* The options of any class. */
typedef union mix_optimizer_settings {
  mix_optimizer_common common;
  mix_sgd_options sgd;
  mix_rmsprop_options rmsprop;
  mix_adam_options adam;
  mix_adagrad_options adagrad;
  mix_adadelta_options adadelta;
  mix_adamax_options adamax;
  mix_lion_options lion;
  mix_ftrl_options ftrl;
  mix_lamb_options lamb;
  mix_adafactor_options adafactor;
  mix_muon_options muon;
  mix_schedule_free_adamw_options schedule_free_adamw;
} mix_optimizer_settings;

typedef struct mix_update mix_update;

enum { MIX_MAX_SLOTS = 3, MIX_MAX_OPTIONS = 15, MIX_MAX_SHARED = 4 };

/* What an optimizer changes in rows without a gradient: bit i stands for slot i. */
enum mix_optimizer_idle {
  MIX_IDLE_NOTHING = 0,
  MIX_IDLE_SLOTS = (1 << MIX_MAX_SLOTS) - 1,
  MIX_IDLE_WEIGHT = 1 << MIX_MAX_SLOTS,
  MIX_IDLE_ALL = MIX_IDLE_SLOTS | MIX_IDLE_WEIGHT,
  MIX_IDLE_DENSE = MIX_IDLE_ALL + 1, /* a row's update depends on all rows: the gradient is made dense */
};

typedef struct mix_optimizer_class {
  const char *name;            /* "RMSprop" */
  const char *lower_case_name; /* "rmsprop" */
  double learning_rate;        /* the default */
  /* The default if it differs between generations. NULL: `learning_rate`. */
  double (*learning_rate_of)(const mix_semantics *rules);
  double weight_decay;                      /* the default */
  mix_field_row options[MIX_MAX_OPTIONS];   /* beyond the common ones; ended by a NULL name */
  const char *slot_names[MIX_MAX_SLOTS][3]; /* indexed by semantics->slot_names */
  /* True if slot i is used. NULL: all that have a name. */
  bool (*has_slot)(const mix_optimizer *optimizer, int slot);
  /* The shape of slot i for a variable; false if it has no such slot. NULL: the variable's shape. */
  bool (*slot_shape)(const mix_optimizer *optimizer, const mix_variable *variable, int slot,
                     mix_shape *shape);
  bool slots_left_out; /* a slot that a variable has not is nothing in the state of any generation */
  /* Bits of the slots that start as copies of the weights, but at 0 where the first update in a captured
   * function makes the state: Keras loses an assignment there (see mix_optimizer_build). */
  unsigned starts_at_weight;
  /* The initial value of slot i. NULL: 0. */
  double (*slot_start)(const mix_optimizer *optimizer, int slot);
  /* The name of a scalar state variable that starts at 1, indexed by semantics->slot_names; NULL: none. It is
   * the last of the state, or comes before the slots if those are made slot by slot. */
  const char *product_names[3];
  /* The first `interleaved` slots are made variable by variable, the others slot by slot.
   * interleaved_everywhere: in all generations. */
  int interleaved;
  bool interleaved_everywhere;
  /* Which variables change where a row-sparse gradient has no row: bits of mix_optimizer_idle. NULL: all. */
  unsigned (*idle)(const mix_optimizer *optimizer);
  bool keras3_only; /* tf_keras has no class of that name */
  /* The weight decay of a variable. NULL: the common option, of all. */
  double (*weight_decay_of)(const mix_optimizer *optimizer, const mix_variable *variable);
  bool overwrites;    /* its ema_overwrite_frequency has a default in tf_keras (RMSprop) */
  bool decays_itself; /* OptimizerV2's `decay` is not that of the learning rate (Nadam: of its momentum) */
  /* Checks the options: false with the error recorded. NULL: nothing to check. */
  bool (*check)(const mix_optimizer *optimizer);
  /* Called once per update, before any weight is set. NULL: nothing to do. */
  void (*begin)(mix_update *update);
  /* Called before each `update` of a variable, once also where its rows are updated apart from the others.
   * NULL: nothing to do. */
  void (*begin_variable)(mix_update *update);
  /* Sets the weight and the slots of trainable variable `index` (with mix_update_set) from its gradient. All
   * have the dtype of its update. */
  void (*update)(mix_update *update, int index, mix_tensor *gradient);
} mix_optimizer_class;

extern const mix_optimizer_class mix_sgd_class, mix_rmsprop_class, mix_adam_class, mix_adamw_class,
    mix_adagrad_class, mix_adadelta_class, mix_adamax_class, mix_nadam_class, mix_lion_class, mix_ftrl_class,
    mix_lamb_class, mix_adafactor_class, mix_muon_class, mix_schedule_free_adamw_class;

/* How slots and weights in bfloat16 are rounded (MIX_STATE of mixtape/optimizer.h). */
typedef enum mix_state_rounding {
  MIX_STATE_UNROUNDED, /* state has the dtype of its variable, in which the update is computed */
  MIX_STATE_NEAREST,
  MIX_STATE_STOCHASTIC,
  MIX_STATE_KAHAN
} mix_state_rounding;

struct mix_optimizer {
  mix_object object;
  const mix_optimizer_class *class; /* NULL: a loss-scale optimizer */
  const char *name;                 /* interned */
  const mix_semantics *semantics;
  const mix_semantics *rules;     /* of the update: the semantics, or those of the legacy family */
  mix_optimizer_settings options; /* resolved: defaults filled in, zero means zero */
  bool resolved;                  /* the options own what their rows release */

  mix_variable *iterations;    /* int64 scalar */
  mix_variable *learning_rate; /* floatx scalar; NULL with a schedule */
  bool built;
  int count; /* of the variables it was built for */
  /* Indexed as the trainable variables, retained. Entries are NULL where a variable has none. */
  mix_variable **trainable, **averages, **accumulators, **slots[MIX_MAX_SLOTS];
  mix_variable *product; /* of a class with product_names */
  mix_state_rounding rounding;
  mix_variable *state_seed;     /* int64 scalar, of stochastic rounding */
  mix_variable **compensations; /* of Kahan's rounding, as the trainable variables */
  mix_list *variables;          /* all state in Keras's order; behind it `own_variables` that Keras has not */
  int own_variables;
  mix_list *overwritten;    /* variables that a call wants overwritten with their gradient */
  mix_list *undecayed;      /* variables without weight decay */
  regex_t *undecayed_names; /* names of variables without weight decay */
  int undecayed_name_count;
  bool wrapped;              /* by a loss-scale optimizer */
  struct mix_shards *shards; /* of state that is divided among the ranks (optim/shard.h); NULL: it is not */

  /* Nadam's traces (adamax.c) */
  bool traced_twice;
  void *made_metrics; /* retained */

  /* a loss-scale optimizer */
  mix_optimizer *inner;
  mix_loss_scale *loss_scale;
  bool loss_was_scaled, gradients_were_unscaled;

  mix_tensor *applied; /* bool scalar: was the latest update applied? NULL: unconditionally */
  char *text;          /* the latest config */
};
extern const mix_class mix_optimizer_object_class;

/* loss_scale_optimizer.c: wraps the optimizer as its generation does. The experimental one keeps the loss
 * scale object, the later ones take its numbers. */
mix_optimizer *mix_optimizer_scale(mix_optimizer *optimizer, mix_loss_scale *scale);

/* optimizer.c: the state as Keras's training function makes it, and as a file's values then replace it. */
mix_status mix_optimizer_build_for_training(mix_optimizer *optimizer, mix_list *variables);
/* adamax.c: the same by an update, or by what stands for one. */
mix_status mix_optimizer_build_in_step(mix_optimizer *optimizer, mix_list *variables);
/* adamax.c: Keras has made the variables of a compiled model's metrics, of which `metrics` is one: in its
 * training function, or elsewhere. What comes after the first call for these metrics changes nothing. */
void mix_optimizer_note_metrics(mix_optimizer *optimizer, void *metrics, bool in_training_function);

/* A pending assignment of one update. Nothing is assigned before all values of the update are known. A
 * guarded value is select(condition, value, old) with `old` the value on entry: the pattern that a plan
 * turns into a predicated update in place. */
typedef struct mix_pending {
  mix_variable *variable;
  mix_tensor *old, *value, *condition; /* old: as stored */
  mix_tensor *wide; /* the old value in the dtype of the update, with what Kahan's rounding kept */
  /* Of a variable that is updated in parts: the new rows at `indices`, and the new value elsewhere. */
  mix_tensor *rows, *indices, *idle;
  bool unguarded; /* takes effect on a skipped step too */
} mix_pending;

/* A variable with a row-sparse gradient is updated in two parts, by the same formulas: its rows at the
 * indices, and all rows as if their gradient were zero. The first then replace those of the second. */
typedef enum mix_update_part { MIX_PART_WHOLE, MIX_PART_ROWS, MIX_PART_IDLE, MIX_PARTS } mix_update_part;

/* The gradient of one variable. A row-sparse one has `values`, which may repeat an index, and `sums`, which
 * has each index once. */
typedef struct mix_update_gradient {
  mix_variable *variable;
  mix_tensor *values, *value_indices; /* NULL: dense */
  mix_tensor *sums, *indices;         /* NULL: the variable is updated as a whole */
} mix_update_gradient;
struct mix_update {
  mix_optimizer *optimizer;
  mix_scope *scope;  /* of everything that the update makes */
  mix_tensor *guard; /* bool scalar: apply the update? NULL: yes */
  mix_pending *pending;
  int count, capacity;
  int searched;                   /* the trainable variable that the last search of state found */
  int gradient_count, gradient;   /* gradients of this call, and the index of the current one */
  mix_update_gradient *gradients; /* gradient_count of them, while weights are updated */
  const mix_update_gradient *of;  /* the variable that is updated in parts, or whose gradient is squared */
  mix_update_part part;
  unsigned idle;                                       /* in MIX_PART_IDLE: which variables may be set */
  mix_tensor *learning_rate[MIX_DTYPE_COUNT];          /* by dtype, made once */
  mix_tensor *shared[MIX_DTYPE_COUNT][MIX_MAX_SHARED]; /* a class's own scalars (Adam: alpha) */
};
bool mix_update_begin(mix_update *update, mix_optimizer *optimizer, mix_tensor *guard);
/* The dtype in which a variable is updated: its own, or float32 for bfloat16 that is rounded at the end. */
mix_dtype mix_update_dtype(const mix_update *update, const mix_variable *variable);
/* The value of a variable so far in this update, in that dtype. */
mix_tensor *mix_update_get(mix_update *update, mix_variable *variable);
void mix_update_set(mix_update *update, mix_variable *variable, mix_tensor *value);
/* Makes all values set so far conditional. */
void mix_update_condition(mix_update *update, mix_tensor *condition);
/* Visits the parts of a variable's update:
 *   for (mix_update_begin_parts(u, variable, idle); mix_update_next_part(u);) ...
 * In each part, get and set mean its rows, or what becomes of the others; then `idle` has the bits of the
 * variables that are set, and setting another one has no effect. A variable with a dense gradient has one
 * part, the whole. */
void mix_update_begin_parts(mix_update *update, const mix_variable *variable, unsigned idle);
bool mix_update_next_part(mix_update *update);
/* The square and the magnitude of the current gradient. keras3: the sum of those of its rows. */
mix_tensor *mix_update_gradient_square(mix_update *update, mix_tensor *gradient);
mix_tensor *mix_update_gradient_abs(mix_update *update, mix_tensor *gradient);
/* What the optimizer changes in rows without a gradient. */
static inline unsigned mix_optimizer_idle_changes(const mix_optimizer *optimizer) {
  if (optimizer->rounding != MIX_STATE_UNROUNDED) return MIX_IDLE_DENSE;
  return optimizer->class->idle ? optimizer->class->idle(optimizer) : MIX_IDLE_ALL;
}
/* True if the square of what is linear in the gradient must be such a sum too. */
bool mix_update_keeps_repeats(const mix_update *update);
/* Replaces what this rank has computed of trainable variable `index` by the whole value of all ranks. */
void mix_update_spread(mix_update *update, int index);
/* The learning rate as a scalar of a dtype. */
mix_tensor *mix_update_learning_rate(mix_update *update, mix_dtype dtype);
/* The number of completed steps plus `offset`, as a scalar of a dtype; offset 1 is the current step. Under
 * gradient accumulation a step is an update, not a call. */
mix_tensor *mix_update_step(mix_update *update, int offset, mix_dtype dtype);
/* A hyperparameter that Keras casts: a Python number goes through float32, which shows in float64. */
mix_tensor *mix_update_cast(double value, mix_dtype dtype);
/* A hyperparameter that Keras does not cast, and 1 - it. OptimizerV2 keeps it in a float32 variable and
 * subtracts in the dtype. */
mix_tensor *mix_update_number(const mix_update *update, double value, mix_dtype dtype);
mix_tensor *mix_update_one_minus(const mix_update *update, double value, mix_dtype dtype);
/* slot + (value - slot) * (1 - beta), assigned to the slot. */
mix_tensor *mix_update_running_mean(mix_update *update, mix_variable *slot, double beta, mix_tensor *value);
/* The variable's value takes effect on skipped steps too. */
void mix_update_unguard(mix_update *update, mix_variable *variable);
/* Assigns the values and ends the update; assigns nothing if an error is recorded. Inside a capture the
 * assignments are graph; outside, one plan evaluates all values first. */
mix_status mix_update_finish(mix_update *update);

/* Clips the gradients of trainable variables `indices` in place. NULL: another rank has it. */
bool mix_clip_gradients(const mix_optimizer *optimizer, int count, mix_tensor **gradients,
                        const int *indices);

/* A new optimizer: fills in the defaults of the options and checks them. */
mix_optimizer *mix_optimizer_new(const mix_optimizer_class *class, const void *options, size_t options_size);
/* Defines mix_NAME_with and mix_NAME_defaults. */
#define MIX_OPTIMIZER(name, type)                                                                            \
  mix_optimizer *mix_##name##_with(const type *options) {                                                    \
    return mix_optimizer_new(&mix_##name##_class, options, sizeof *options);                                 \
  }
#define MIX_OPTIMIZER_DEFAULTS(name)                                                                         \
  mix_##name##_options mix_##name##_defaults(void) {                                                         \
    return (mix_##name##_options){.size = sizeof(mix_##name##_options)};                                     \
  }
/* A state variable, made outside any capture. The caller owns a reference. */
mix_variable *mix_optimizer_variable(const char *name, mix_tensor *(*initial)(const void *context),
                                     const void *context);
/* state_rounding.c: from the options of a new optimizer; false with the error recorded. */
bool mix_optimizer_choose_rounding(mix_optimizer *optimizer);
/* Another state of an optimizer that is not built. False with the error recorded. */
bool mix_optimizer_set_state(mix_optimizer *optimizer, const char *state, uint64_t seed);
/* Can these variables have that state? */
bool mix_optimizer_check_state(const mix_optimizer *optimizer, mix_list *variables);
/* The seed of stochastic rounding, which the state will have; NULL: it draws nothing, or an error. */
mix_variable *mix_optimizer_make_seed(mix_optimizer *optimizer);
/* Adds to the state what the rounding needs. */
bool mix_optimizer_add_rounding(mix_optimizer *optimizer);
/* False, with a TypeError of `call`, unless these are a list of variables. */
bool mix_variables_given(mix_list *variables, const char *call);
/* The index of a variable among those the optimizer was built for, or -1. `hint`: the index tried first. */
int mix_optimizer_index(const mix_optimizer *optimizer, const mix_variable *variable, int hint);
/* Does the gradient of the variable replace its value: by the variable itself, or by a call for this plain
 * optimizer? */
bool mix_optimizer_overwrites(const mix_optimizer *optimizer, const mix_variable *variable);
/* One update of a plain optimizer. A false guard skips it (NULL: no guard). count_skipped: a skipped step
 * still increments iterations. */
mix_status mix_optimizer_step(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables,
                              mix_tensor *guard, bool count_skipped);
/* A gradient behind an identity node, made once, that the graph rewrite never changes. */
mix_tensor *mix_optimizer_gradient(mix_tensor *gradient);
/* Checks the lists of an apply call; false with the error recorded. */
bool mix_optimizer_check_lists(const char *call, mix_optimizer *optimizer, mix_list *gradients,
                               mix_list *variables);
/* Warns if all of `steps` steps of a run, of which `skipped` were skipped, changed nothing. */
void mix_optimizer_warn_unapplied(const mix_optimizer *optimizer, const char *call, int64_t steps,
                                  int64_t skipped);
/* One update of a loss-scale optimizer from gradients in the form that its apply_gradients takes. */
mix_status mix_loss_scale_optimizer_step(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables);
/* The number in an int64 scalar variable, also while an error is pending. */
int64_t mix_optimizer_count(mix_variable *counter);

/* The optimizer that owns the state: the inner one of a wrapper. */
static inline mix_optimizer *mix_optimizer_plain(const mix_optimizer *optimizer) {
  return optimizer->inner ? optimizer->inner : (mix_optimizer *)optimizer;
}

/* The config as JSON, a new jansson reference. */
json_t *mix_optimizer_to_json(mix_optimizer *optimizer);
/* From {"class_name", "config"}; scoped. */
mix_optimizer *mix_optimizer_from_json(const json_t *json, const mix_semantics *semantics);
json_t *mix_loss_scale_optimizer_config_json(mix_optimizer *optimizer, json_t *inner);
typedef mix_optimizer *mix_optimizer_reader(const json_t *json, const mix_semantics *semantics);
mix_optimizer *mix_loss_scale_optimizer_from_json(const json_t *config, const mix_semantics *semantics,
                                                  mix_optimizer_reader *read_inner);
/* The rows of a class's options. */
mix_fields mix_optimizer_fields(const mix_optimizer_class *class, const mix_semantics *rules);
/* The first option that is set and that another generation does not have; NULL: none. */
const char *mix_optimizer_lost_option(const mix_optimizer *optimizer, const mix_semantics *other);
