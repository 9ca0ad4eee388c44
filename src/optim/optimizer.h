/* Inside an optimizer: what a class says of itself, the state, and the pending assignments of one update. */
#ifndef MIX_OPTIM_OPTIMIZER_H
#define MIX_OPTIM_OPTIMIZER_H

#include "base/object.h"
#include "graph/variable.h"
#include "nn/policy/semantics.h"
#include <jansson.h>
#include <mixtape/ops.h>
#include <mixtape/schedule.h>
#include <mixtape/optimizer.h>
#include <regex.h>

/* An option of a class: one row serves defaults, configs and the command line. */
typedef enum mix_option_kind {
  MIX_OPTION_NUMBER,
  MIX_OPTION_INTEGER,
  MIX_OPTION_BOOLEAN,
  MIX_OPTION_NEGATED, /* Keras's default is true, the field says no_... */
} mix_option_kind;
typedef struct mix_option_row {
  const char *name;
  mix_option_kind kind;
  bool optional;   /* Keras's default is None: null in configs */
  double default_value; /* the default */
  size_t offset;   /* in the options struct */
  /* Is it an option of that generation's constructor? NULL: of all. */
  bool (*known)(const mix_semantics *rules);
  /* Does a config hold it where it is None? NULL: yes. */
  bool (*said)(const mix_semantics *rules);
} mix_option_row;

/* The fields that all options structs begin with. */
typedef struct mix_optimizer_common { MIX_OPTIMIZER_FIELDS } mix_optimizer_common;

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
} mix_optimizer_settings;

typedef struct mix_update mix_update;

enum { MIX_MAX_SLOTS = 3, MIX_MAX_OPTIONS = 8, MIX_MAX_SHARED = 4 };

typedef struct mix_optimizer_class {
  const char *name;             /* "RMSprop" */
  const char *lower_case_name;  /* "rmsprop" */
  double learning_rate;         /* the default */
  double (*learning_rate_of)(const mix_semantics *rules); /* the default where the generations differ; NULL: learning_rate */
  double weight_decay;          /* the default */
  mix_option_row options[MIX_MAX_OPTIONS]; /* its own, beyond the common ones; ended by a NULL name */
  const char *slot_names[MIX_MAX_SLOTS][3]; /* by semantics->slot_names */
  /* Is slot i wanted? NULL: all that have a name. */
  bool (*has_slot)(const mix_optimizer *optimizer, int slot);
  /* The shape of slot i for a variable; false: that variable has none. NULL: the variable's own. */
  bool (*slot_shape)(const mix_variable *variable, int slot, mix_shape *shape);
  /* The value that slot i starts at. NULL: 0. */
  double (*slot_start)(const mix_optimizer *optimizer, int slot);
  /* A scalar that starts at 1, last of the state, but before the slots where those are made slot by slot; by
   * semantics->slot_names; NULL: none. */
  const char *product_names[3];
  /* The first `interleaved` slots are made variable after variable, the others slot after slot; everywhere: in all generations. */
  int interleaved;
  bool interleaved_everywhere;
  bool decays_itself; /* OptimizerV2's `decay` is not the learning rate's (Nadam: its schedule's) */
  /* Checks the options: false with the error recorded. NULL: nothing to check. */
  bool (*check)(const mix_optimizer *optimizer);
  /* Once an update, before any weight. NULL: nothing to do. */
  void (*begin)(mix_update *update);
  /* Sets weight and slots of trainable variable `index` (through mix_update_set) from its gradient, all of the variable's dtype. */
  void (*update)(mix_update *update, int index, mix_tensor *gradient);
} mix_optimizer_class;

extern const mix_optimizer_class mix_sgd_class, mix_rmsprop_class, mix_adam_class, mix_adamw_class, mix_adagrad_class, mix_adadelta_class,
    mix_adamax_class, mix_nadam_class, mix_lion_class, mix_ftrl_class, mix_lamb_class, mix_adafactor_class;
/* All of them, ended by NULL. */
extern const mix_optimizer_class *const mix_optimizer_classes[];

struct mix_optimizer {
  mix_object object;
  const mix_optimizer_class *class; /* NULL: a loss-scale optimizer */
  const char *name;                 /* interned */
  const mix_semantics *semantics;
  const mix_semantics *rules;       /* of the update: the semantics, or those of the legacy family */
  mix_optimizer_settings options;   /* resolved: defaults filled in, zero means zero */

  mix_variable *iterations;    /* int64 scalar */
  mix_variable *learning_rate; /* floatx scalar; NULL with a schedule that tf_keras does not keep in a variable */
  bool built;
  int count;                   /* variables it was built for */
  mix_variable **trainable, **averages, **accumulators, **slots[MIX_MAX_SLOTS]; /* retained; entries NULL where there is none */
  mix_variable *product;       /* of a class with product_names */
  mix_list *variables;         /* all state in Keras's order */
  mix_list *overwritten;       /* variables that take their gradient */
  mix_list *undecayed;         /* variables that weight_decay leaves alone */
  regex_t *undecayed_names;    /* the same by their names */
  int undecayed_name_count;
  bool wrapped;                /* by a loss-scale optimizer */

  /* a loss-scale optimizer */
  mix_optimizer *inner;
  mix_loss_scale *loss_scale;
  bool loss_was_scaled, gradients_were_unscaled;

  mix_tensor *applied; /* the latest verdict; NULL: unconditional */
  char *text;          /* the latest config */
};
extern const mix_class mix_optimizer_object_class;

/* What an update has decided so far: nothing is assigned before all of it is. A value that a condition gates is select(condition,
 * value, old) with old the value on entry: the pattern that a plan turns into a guarded update in place. */
typedef struct mix_pending {
  mix_variable *variable;
  mix_tensor *old, *value, *condition;
  bool unguarded; /* takes effect on a skipped step too */
} mix_pending;
struct mix_update {
  mix_optimizer *optimizer;
  mix_scope *scope;  /* of everything that the update makes */
  mix_tensor *guard; /* bool scalar: apply at all? NULL: yes */
  mix_pending *pending;
  int count, capacity;
  int gradient_count, gradient; /* that the rule sees in this call; which of them it sees now */
  mix_tensor *learning_rate[MIX_DTYPE_COUNT]; /* by dtype, made once */
  mix_tensor *shared[MIX_DTYPE_COUNT][MIX_MAX_SHARED]; /* a class's own scalars (Adam: alpha) */
};
bool mix_update_begin(mix_update *update, mix_optimizer *optimizer, mix_tensor *guard);
/* The value of a variable as this update has it so far, in its true dtype. */
mix_tensor *mix_update_get(mix_update *update, mix_variable *variable);
void mix_update_set(mix_update *update, mix_variable *variable, mix_tensor *value);
/* Everything set so far takes effect only where the condition holds. */
void mix_update_condition(mix_update *update, mix_tensor *condition);
/* The learning rate as a scalar of a dtype. */
mix_tensor *mix_update_learning_rate(mix_update *update, mix_dtype dtype);
/* Steps taken plus `ahead`, as a scalar of a dtype: 1 for the step that is being taken. Counts updates under accumulation. */
mix_tensor *mix_update_step(mix_update *update, int ahead, mix_dtype dtype);
/* A hyperparameter as a cast of Keras's makes it: of a Python number by way of float32, which shows in float64. */
mix_tensor *mix_update_cast(double value, mix_dtype dtype);
/* A hyperparameter that Keras computes with uncast; and 1 - it. OptimizerV2 has it in a float32 variable, and subtracts in the dtype. */
mix_tensor *mix_update_number(const mix_update *update, double value, mix_dtype dtype);
mix_tensor *mix_update_one_minus(const mix_update *update, double value, mix_dtype dtype);
/* slot + (value - slot) * (1 - beta), assigned to the slot. */
mix_tensor *mix_update_running_mean(mix_update *update, mix_variable *slot, double beta, mix_tensor *value);
/* The latest value takes effect on skipped steps too. */
void mix_update_unguard(mix_update *update, mix_variable *variable);
/* Assigns, unless an error is pending: inside a capture as graph, outside after evaluating all values in one plan. Ends the update. */
mix_status mix_update_finish(mix_update *update);

/* Clips in place an array of gradients (none NULL). */
bool mix_clip_gradients(const mix_optimizer *optimizer, int count, mix_tensor **gradients);

/* A new optimizer from options: resolves defaults and checks. */
mix_optimizer *mix_optimizer_new(const mix_optimizer_class *class, const void *options, size_t options_size);
/* A variable of an optimizer's own, made outside any capture; the caller owns a reference. */
mix_variable *mix_optimizer_variable(const char *name, mix_tensor *(*initial)(const void *context), const void *context);
/* The index of a variable it was built for, -1 if none. `hint`: where to look first. */
int mix_optimizer_index(const mix_optimizer *optimizer, const mix_variable *variable, int hint);
/* One update of a plain optimizer. A guard that is false skips it (NULL: none); count_skipped: iterations moves all the same. */
mix_status mix_optimizer_step(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables, mix_tensor *guard, bool count_skipped);
/* A gradient as updates use it: behind the identity that the graph rewrite never looks through, made once. */
mix_tensor *mix_optimizer_gradient(mix_tensor *gradient);
/* Checks the lists of an apply call; false with the error recorded. */
bool mix_optimizer_check_lists(const char *call, mix_optimizer *optimizer, mix_list *gradients, mix_list *variables);
/* One update of a loss-scale optimizer from gradients as its apply_gradients takes them. */
mix_status mix_loss_scale_optimizer_step(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables);
/* The optimizer that holds the state: the inner one of a wrapper. */
static inline mix_optimizer *mix_optimizer_plain(const mix_optimizer *optimizer) {
  return optimizer->inner ? optimizer->inner : (mix_optimizer *)optimizer;
}

/* Configs as JSON: new jansson references. */
json_t *mix_optimizer_config_json(mix_optimizer *optimizer);
json_t *mix_optimizer_to_json(mix_optimizer *optimizer);
/* From {"class_name", "config"}; scoped. */
mix_optimizer *mix_optimizer_from_json(const json_t *json, const mix_semantics *semantics);
json_t *mix_loss_scale_optimizer_config_json(mix_optimizer *optimizer, json_t *inner);
typedef mix_optimizer *mix_optimizer_reader(const json_t *json, const mix_semantics *semantics);
mix_optimizer *mix_loss_scale_optimizer_from_json(const json_t *config, const mix_semantics *semantics,
                                                  mix_optimizer_reader *read_inner);
/* Rows common to all classes, ended by a NULL name. */
extern const mix_option_row mix_common_options[];

#endif
