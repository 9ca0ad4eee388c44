/* Construction of an optimizer and of its state, and access to the state. */
#include "optim/shard.h"
#include "optim/schedule.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "nn/policy/loss_scale.h"
#include "nn/layer/layer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void release_array(mix_variable **array, int count) {
  for (int i = 0; array && i < count; i++) mix_release(array[i]);
  mix_free(array);
}

static void release_state(mix_optimizer *optimizer) {
  mix_variable ***arrays[] = {&optimizer->trainable, &optimizer->averages, &optimizer->accumulators};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
    release_array(*arrays[i], optimizer->count);
    *arrays[i] = NULL;
  }
  for (int slot = 0; slot < MIX_MAX_SLOTS; slot++) {
    release_array(optimizer->slots[slot], optimizer->count);
    optimizer->slots[slot] = NULL;
  }
  release_array(optimizer->compensations, optimizer->count);
  optimizer->compensations = NULL;
  mix_release(optimizer->product);
  optimizer->product = NULL;
  optimizer->own_variables = 0;
  mix_shards_free(optimizer->shards);
  optimizer->shards = NULL;
  optimizer->count = 0;
}

static void release_expressions(regex_t *expressions, int count) {
  for (int i = 0; i < count; i++) regfree(&expressions[i]);
  mix_free(expressions);
}

static void optimizer_finalize(void *object) {
  mix_optimizer *optimizer = object;
  release_state(optimizer);
  if (optimizer->inner) optimizer->inner->wrapped = false;
  void *references[] = {optimizer->iterations,  optimizer->learning_rate, optimizer->variables,
                        optimizer->overwritten, optimizer->undecayed,     optimizer->inner,
                        optimizer->loss_scale,  optimizer->applied,       optimizer->options.common.schedule,
                        optimizer->state_seed};
  for (size_t i = 0; i < sizeof references / sizeof *references; i++) mix_release(references[i]);
  release_expressions(optimizer->undecayed_names, optimizer->undecayed_name_count);
  if (optimizer->resolved) {
    const mix_fields fields = mix_optimizer_fields(optimizer->class, optimizer->rules);
    mix_fields_release(&fields, &optimizer->options);
  }
  mix_free(optimizer->text);
  mix_release(optimizer->made_metrics);
}

static const char *name_of(const void *object) { return ((const mix_optimizer *)object)->name; }
const mix_class mix_optimizer_object_class = {
    .name = "optimizer", .finalize = optimizer_finalize, .name_of = name_of};

/* ---- options ---- */

/* A number, or a schedule as an object. */
static json_t *write_rate(const mix_field *field) {
  const mix_optimizer_common *o = field->options;
  return o->schedule ? mix_schedule_to_json(o->schedule, o->semantics) : json_real(o->learning_rate);
}
static bool read_rate(const mix_field *field, const json_t *value) {
  mix_optimizer_common *o = field->options;
  if (json_is_object(value)) return (o->schedule = mix_schedule_from_json(value)) != NULL;
  long long number = json_integer_value(value);
  if (json_is_integer(value) && field->rules->integer_learning_rate_refused)
    return mix_fail_value("%s: learning_rate is the integer %lld; expected a floating number, such as %lld.0",
                          field->call, number, number);
  return mix_read_number(field, value);
}
static const mix_value_kind rate_kind = {"a number", sizeof(double), mix_resolve_number, NULL,
                                         write_rate, read_rate,      mix_parse_number};

#define FIELD(member) MIX_FIELD(mix_optimizer_common, member)
#define DECAYS MIX_RULE(learning_rate_decay)
#define AVERAGES MIX_RULE(averages_and_weight_decay)
#define CLIP &mix_field_number, .optional = true, .omit_none = MIX_RULE(clip_omitted_if_none)
static const mix_field_row common_options[] = {
    {FIELD(name), &mix_field_text},
    {FIELD(learning_rate), &rate_kind},
    {FIELD(weight_decay), &mix_field_number, .optional = true, .only = AVERAGES},
    {FIELD(clipnorm), CLIP},
    {FIELD(global_clipnorm), CLIP},
    {FIELD(clipvalue), CLIP},
    {FIELD(use_ema), &mix_field_boolean, .only = AVERAGES},
    {FIELD(ema_momentum), &mix_field_number, .number = 0.99, .only = AVERAGES},
    {FIELD(ema_overwrite_frequency), &mix_field_integer, .optional = true, .only = AVERAGES},
    {FIELD(loss_scale_factor), &mix_field_number, .optional = true,
     .only = MIX_RULE(optimizer_loss_scale_factor)},
    {FIELD(gradient_accumulation_steps), &mix_field_integer, .optional = true,
     .only = MIX_RULE(gradient_accumulation)},
    {FIELD(decay), &mix_field_number, .only = DECAYS},
    {FIELD(state), &mix_field_text, .text = "float32", .except = MIX_ALWAYS,
     .choices = "float32|bfloat16|bfloat16-stochastic|bfloat16-kahan"},
    {FIELD(state_seed), &mix_field_seed, .except = MIX_ALWAYS},
    {0}};

mix_fields mix_optimizer_fields(const mix_optimizer_class *class, const mix_semantics *rules) {
  return (mix_fields){common_options, class->options, class->lower_case_name, rules};
}

const char *mix_optimizer_lost_option(const mix_optimizer *optimizer, const mix_semantics *other) {
  const mix_fields fields = mix_optimizer_fields(optimizer->class, optimizer->rules);
  return mix_fields_lost(&fields, other, &optimizer->options, sizeof optimizer->options);
}

/* Which limits of clipping may be set together. */
static bool check_clipping(const mix_semantics *rules, const char *call, double norm, double global,
                           double value) {
  if (rules->clip_rule == MIX_CLIP_ONE && (norm != 0) + (global != 0) + (value != 0) > 1)
    mix_fail_value("%s: clipnorm=%g, global_clipnorm=%g and clipvalue=%g; only one of them can be set", call,
                   norm, global, value);
  else if (norm != 0 && global != 0)
    mix_fail_value("%s: clipnorm=%g and global_clipnorm=%g; at most one of them can be set", call, norm,
                   global);
  return !mix_failed();
}

static bool check_common(const mix_optimizer *optimizer) {
  const mix_optimizer_common *options = &optimizer->options.common;
  const char *call = optimizer->class->lower_case_name;
  if (!check_clipping(optimizer->rules, call, options->clipnorm, options->global_clipnorm,
                      options->clipvalue))
    return false;
  if (options->gradient_accumulation_steps != 0 && options->gradient_accumulation_steps < 2)
    mix_fail_value("%s: gradient_accumulation_steps is %lld; expected an integer of at least 2", call,
                   (long long)options->gradient_accumulation_steps);
  else if (options->use_ema && !(options->ema_momentum >= 0 && options->ema_momentum <= 1))
    mix_fail_value("%s: ema_momentum is %g; expected a number in [0, 1]", call, options->ema_momentum);
  else if (options->use_ema && options->ema_overwrite_frequency < 0)
    mix_fail_value("%s: ema_overwrite_frequency is %lld; expected an integer of at least 1 or none", call,
                   (long long)options->ema_overwrite_frequency);
  return !mix_failed() && (!optimizer->class->check || optimizer->class->check(optimizer));
}

/* ---- state ---- */

static mix_tensor *zero_count(const void *context) { return mix_scalar(0, MIX_INT64); }
static mix_tensor *zero_int32(const void *context) { return mix_scalar(0, MIX_INT32); }
static mix_tensor *given_rate(const void *context) {
  return mix_scalar(*(const double *)context, mix_floatx());
}
static mix_tensor *scalar_one(const void *context) { return mix_scalar(1, *(const mix_dtype *)context); }

/* The initial value of a state variable. */
typedef struct start {
  mix_dtype dtype; /* MIX_DTYPE_NONE: the variable's */
  mix_variable *variable;
  bool of_all; /* also of variables that their gradient replaces */
  bool copy;   /* a copy of the variable, instead of `value` */
  double value;
  mix_shape shape;
  int slot;
  /* NULL: the variable's shape */
  bool (*slot_shape)(const mix_optimizer *optimizer, const mix_variable *variable, int slot,
                     mix_shape *shape);
} start;
static mix_tensor *initial_value(const void *context) {
  const start *s = context;
  const mix_dtype dtype = s->dtype == MIX_DTYPE_NONE ? s->variable->dtype : s->dtype;
  return s->copy ? mix_cast(mix_identity(mix_variable_true_value(s->variable)), dtype)
                 : mix_fill(s->shape, s->value, dtype);
}

mix_optimizer *mix_optimizer_new(const mix_optimizer_class *class, const void *options, size_t options_size) {
  mix_optimizer_settings given = {0};
  if (!mix_options_copy(&given, options_size, options, class->lower_case_name)) return NULL;
  if (given.common.schedule && given.common.learning_rate != 0)
    return mix_fail_value("%s: .learning_rate is %g, and .schedule is given too; give one of them",
                          class->lower_case_name,
                          given.common.learning_rate == MIX_ZERO ? 0 : given.common.learning_rate);
  mix_optimizer *optimizer = mix_object_new(sizeof *optimizer, &mix_optimizer_object_class);
  if (!optimizer) return NULL;
  optimizer->options = given;
  mix_optimizer_settings *settings = &optimizer->options;
  mix_retain(settings->common.schedule);
  optimizer->class = class;
  optimizer->semantics = mix_semantics_or_current(settings->common.semantics);
  optimizer->rules = settings->common.legacy ? &mix_semantics_experimental : optimizer->semantics;
  double rate = class->learning_rate_of ? class->learning_rate_of(optimizer->rules) : class->learning_rate;
  settings->common.learning_rate = mix_option_number(settings->common.learning_rate, rate);
  if (settings->common.weight_decay == 0) settings->common.weight_decay = class->weight_decay;
  if (class->overwrites && settings->common.ema_overwrite_frequency == 0)
    settings->common.ema_overwrite_frequency = optimizer->rules->ema_overwrite_frequency_rmsprop;
  if (class->decays_itself && settings->common.decay == 0 && optimizer->rules->learning_rate_decay)
    settings->common.decay = optimizer->rules->nadam_schedule_decay;
  char text[64];
  const char *name = optimizer->rules->optimizer_name_lower_case
                         ? mix_snake_case(class->name, false, text, sizeof text)
                         : class->name;
  if (!settings->common.name) settings->common.name = name;
  mix_fields fields = mix_optimizer_fields(class, optimizer->rules);
  optimizer->resolved = mix_fields_resolve(&fields, settings);
  bool made = optimizer->resolved && check_common(optimizer);
  optimizer->name = settings->common.name;
  made = made && mix_optimizer_choose_rounding(optimizer);
  if (made) {
    optimizer->variables = mix_retain(mix_list_new(0, NULL));
    optimizer->iterations = mix_optimizer_variable(
        optimizer->rules->iteration_variable_named_iter ? "iter" : "iteration", zero_count, NULL);
    mix_list_append(optimizer->variables, optimizer->iterations);
    if (!settings->common.schedule) {
      optimizer->learning_rate =
          mix_optimizer_variable("learning_rate", given_rate, &settings->common.learning_rate);
      mix_list_append(optimizer->variables, optimizer->learning_rate);
    }
    made = !mix_failed();
  }
  if (made) return mix_scoped(optimizer);
  mix_release(optimizer);
  return NULL;
}

/* Makes a state variable for each trainable variable in [first, last) and appends it to the list of all
 * state; none for variables that their gradient replaces, unless it is `of_all`. Names: keras3
 * NAME/WEIGHT_SLOT with "_" for the separators of the weight's path, tf_keras SLOT/WEIGHT, experimental
 * NAME/WEIGHT/SLOT. */
static bool add_state(mix_optimizer *optimizer, mix_variable ***array, const char *slot, start from,
                      int first, int last) {
  if (!*array) *array = mix_calloc((size_t)optimizer->count + 1, sizeof **array);
  for (int i = first; *array && i < last; i++) {
    char name[512];
    const char *weight = optimizer->trainable[i]->name;
    if (optimizer->rules->state_path == MIX_STATE_FLAT) {
      int length = snprintf(name, sizeof name, "%.240s/", optimizer->name);
      snprintf(name + length, sizeof name - (size_t)length, "%s_%s", weight, slot);
      for (char *c = name + length; *c; c++)
        if (*c == '/' || *c == ':') *c = '_';
    } else if (optimizer->rules->state_path == MIX_STATE_SLOT_WEIGHT) {
      snprintf(name, sizeof name, "%s/%s", slot, weight);
    } else {
      snprintf(name, sizeof name, "%s/%s/%s", optimizer->name, weight, slot);
    }
    from.variable = optimizer->trainable[i];
    from.shape = from.variable->shape;
    const bool missing =
        from.slot_shape && !from.slot_shape(optimizer, from.variable, from.slot, &from.shape);
    const bool counted = optimizer->rules->missing_slots_counted && !optimizer->class->slots_left_out;
    if (missing && !counted) continue;
    if (!missing && !from.of_all && mix_optimizer_overwrites(optimizer, from.variable)) continue;
    mix_variable *state = mix_optimizer_variable(name, missing ? zero_int32 : initial_value, &from);
    if (!state || mix_list_append(optimizer->variables, state) != MIX_OK) return mix_release(state), false;
    if (missing)
      mix_release(state);
    else
      (*array)[i] = state;
    if (!missing && optimizer->shards && !mix_optimizer_overwrites(optimizer, from.variable) &&
        !mix_shards_divide(optimizer, state, i))
      return false;
  }
  return *array != NULL;
}

static bool add_slot(mix_optimizer *optimizer, bool in_training, int slot, int first, int last) {
  const mix_optimizer_class *class = optimizer->class;
  const char *name = class->slot_names[slot][optimizer->rules->slot_names];
  if (!name || (class->has_slot && !class->has_slot(optimizer, slot))) return true;
  start from = {.copy = !in_training && (class->starts_at_weight >> slot & 1),
                .value = class->slot_start ? class->slot_start(optimizer, slot) : 0,
                .slot = slot,
                .dtype = optimizer->rounding != MIX_STATE_UNROUNDED ? MIX_BFLOAT16 : MIX_DTYPE_NONE,
                .slot_shape = class->slot_shape};
  return add_state(optimizer, &optimizer->slots[slot], name, from, first, last);
}

static bool add_product(mix_optimizer *optimizer) {
  const char *name = optimizer->class->product_names[optimizer->rules->slot_names];
  if (!name) return true;
  mix_dtype dtype = optimizer->count ? optimizer->trainable[0]->dtype : mix_floatx();
  if (optimizer->rounding != MIX_STATE_UNROUNDED) dtype = MIX_FLOAT32;
  optimizer->product = mix_optimizer_variable(name, scalar_one, &dtype);
  return optimizer->product && mix_list_append(optimizer->variables, optimizer->product) == MIX_OK;
}

static bool add_slots(mix_optimizer *optimizer, bool in_training) {
  const mix_optimizer_class *class = optimizer->class;
  bool by_slot = optimizer->rules->slots_slot_by_slot;
  int interleaved = by_slot && !class->interleaved_everywhere ? 0 : class->interleaved;
  if (by_slot && !add_product(optimizer)) return false;
  for (int i = 0; i < optimizer->count; i++)
    for (int slot = 0; slot < interleaved; slot++)
      if (!add_slot(optimizer, in_training, slot, i, i + 1)) return false;
  for (int slot = interleaved; slot < MIX_MAX_SLOTS; slot++)
    if (!add_slot(optimizer, in_training, slot, 0, optimizer->count)) return false;
  return by_slot || add_product(optimizer);
}

static bool make_state(mix_optimizer *optimizer, mix_list *variables, bool in_training) {
  int count = mix_list_count(variables);
  optimizer->trainable = mix_calloc((size_t)count + 1, sizeof *optimizer->trainable);
  if (!optimizer->trainable) return false;
  for (int i = 0; i < count; i++) optimizer->trainable[i] = mix_retain(mix_list_get(variables, i));
  optimizer->count = count;
  if (mix_shards_wanted() && !mix_shards_plan(optimizer)) return false;
  const mix_optimizer_common *options = &optimizer->options.common;
  start average = {.copy = optimizer->rules->ema_starts_at_weight}, zero = {.of_all = true};
  if (options->use_ema && !add_state(optimizer, &optimizer->averages, "average", average, 0, count))
    return false;
  if (options->gradient_accumulation_steps &&
      !add_state(optimizer, &optimizer->accumulators, "gradient_accumulator", zero, 0, count))
    return false;
  return add_slots(optimizer, in_training) && mix_optimizer_add_rounding(optimizer);
}

bool mix_variables_given(mix_list *variables, const char *call) {
  if (!mix_given(variables, &mix_list_class, call, "a list of variables")) return false;
  for (int i = 0; i < mix_list_count(variables); i++)
    if (!mix_is(mix_list_get(variables, i), &mix_variable_class))
      return mix_fail_type("%s: item %d of the variables is not a variable", call, i);
  return true;
}

/* Makes all of the state, or none if an error occurs, so that a later call can try again. */
static mix_status build(mix_optimizer *optimizer, mix_list *variables, bool in_training) {
  if (!mix_variables_given(variables, optimizer->name)) return mix_error();
  const double factor = optimizer->options.common.loss_scale_factor;
  for (int i = 0; i < mix_list_count(variables); i++)
    if (!mix_loss_scale_check(factor, ((mix_variable *)mix_list_get(variables, i))->dtype, optimizer->name))
      return mix_error();
  if (!mix_optimizer_check_state(optimizer, variables)) return mix_error();
  mix_list *former = optimizer->variables;
  MIX_SCOPE {
    optimizer->variables = mix_retain(mix_list_new(mix_list_count(former), mix_list_items(former)));
  }
  optimizer->built = optimizer->variables && make_state(optimizer, variables, in_training);
  if (optimizer->built) {
    mix_release(former);
    return MIX_OK;
  }
  release_state(optimizer);
  mix_release(optimizer->variables);
  optimizer->variables = former;
  return mix_error();
}

static mix_status build_once(mix_optimizer *optimizer, mix_list *variables, bool in_training) {
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class) || !mix_is(variables, &mix_list_class))
    return mix_fail_status(MIX_TYPE_ERROR, "optimizer_build: expected an optimizer and a list of variables");
  optimizer = mix_optimizer_plain(optimizer);
  return optimizer->built ? MIX_OK : build(optimizer, variables, in_training);
}

mix_status mix_optimizer_build(mix_optimizer *optimizer, mix_list *variables) {
  return build_once(optimizer, variables, false);
}
mix_status mix_optimizer_build_for_training(mix_optimizer *optimizer, mix_list *variables) {
  return build_once(optimizer, variables, true);
}

mix_status mix_optimizer_exclude_from_weight_decay(mix_optimizer *optimizer, mix_list *variables,
                                                   int name_count, const char *const *names) {
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_status(MIX_TYPE_ERROR, "optimizer_exclude_from_weight_decay: no optimizer");
  optimizer = mix_optimizer_plain(optimizer);
  if (optimizer->built)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "optimizer_exclude_from_weight_decay: %s is built; call it before the first step",
                           optimizer->name);
  if (variables && !mix_variables_given(variables, "optimizer_exclude_from_weight_decay")) return mix_error();
  if (name_count < 0 || (name_count > 0 && !names))
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "optimizer_exclude_from_weight_decay: %d names%s; expected 0 or more, and their texts", name_count,
        names ? "" : " at NULL");
  regex_t *expressions = mix_calloc((size_t)name_count + 1, sizeof *expressions);
  if (!expressions) return mix_error();
  for (int i = 0; i < name_count; i++) {
    char reason[128] = "it is NULL";
    const int problem = names[i] ? regcomp(&expressions[i], names[i], REG_EXTENDED | REG_NOSUB) : REG_BADPAT;
    if (!problem) continue;
    if (names[i]) regerror(problem, &expressions[i], reason, sizeof reason);
    release_expressions(expressions, i);
    return mix_fail_status(MIX_VALUE_ERROR,
                           "optimizer_exclude_from_weight_decay: \"%.200s\" is no regular expression: %s",
                           names[i] ? names[i] : "", reason);
  }
  release_expressions(optimizer->undecayed_names, optimizer->undecayed_name_count);
  optimizer->undecayed_names = expressions;
  optimizer->undecayed_name_count = name_count;
  mix_release(optimizer->undecayed);
  optimizer->undecayed = mix_retain(variables);
  return mix_error();
}

mix_status mix_optimizer_overwrite_with_gradient(mix_optimizer *optimizer, mix_variable *variable) {
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class) || !mix_is(variable, &mix_variable_class))
    return mix_fail_status(MIX_TYPE_ERROR,
                           "optimizer_overwrite_with_gradient: expected an optimizer and a variable");
  optimizer = mix_optimizer_plain(optimizer);
  if (!optimizer->overwritten) optimizer->overwritten = mix_retain(mix_list_new(0, NULL));
  return mix_list_append(optimizer->overwritten, variable);
}

/* ---- access ---- */

const char *mix_optimizer_name(const mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) ? optimizer->name : "";
}
const char *mix_optimizer_class_name(const mix_optimizer *optimizer) {
  if (!mix_is(optimizer, &mix_optimizer_object_class)) return "";
  if (optimizer->class) return optimizer->class->name;
  bool new_family = optimizer->semantics->wrapper_class_by_family && !optimizer->inner->options.common.legacy;
  return new_family ? "LossScaleOptimizerV3" : "LossScaleOptimizer";
}

int64_t mix_optimizer_count(mix_variable *counter) {
  mix_error_aside error;
  mix_error_set_aside(&error);
  int64_t count = 0;
  mix_scope *scope = mix_scope_begin();
  mix_tensor *value = mix_variable_true_value(counter);
  if (value) mix_tensor_read(value, MIX_INT64, &count, 1);
  if (scope) mix_scope_end(scope);
  mix_error_put_back(&error);
  return count;
}

int64_t mix_optimizer_iterations(mix_optimizer *optimizer) {
  if (!mix_is(optimizer, &mix_optimizer_object_class)) return 0;
  optimizer = mix_optimizer_plain(optimizer);
  const int64_t count = mix_optimizer_count(optimizer->iterations),
                steps = optimizer->options.common.gradient_accumulation_steps;
  return steps ? count / steps : count;
}

mix_variable *mix_optimizer_iterations_variable(mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) ? mix_optimizer_plain(optimizer)->iterations : NULL;
}
mix_variable *mix_optimizer_learning_rate_variable(mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) ? mix_optimizer_plain(optimizer)->learning_rate
                                                        : NULL;
}

double mix_optimizer_learning_rate(mix_optimizer *optimizer) {
  if (!mix_is(optimizer, &mix_optimizer_object_class)) return 0;
  mix_error_aside error;
  mix_error_set_aside(&error);
  optimizer = mix_optimizer_plain(optimizer);
  mix_scope *scope = mix_scope_begin();
  mix_tensor *rate = optimizer->learning_rate
                         ? mix_variable_true_value(optimizer->learning_rate)
                         : mix_schedule_call(optimizer->options.common.schedule,
                                             mix_variable_true_value(optimizer->iterations));
  double value = rate ? mix_tensor_item(rate) : NAN;
  if (scope) mix_scope_end(scope);
  mix_error_put_back(&error);
  return value;
}

mix_status mix_optimizer_set_learning_rate(mix_optimizer *optimizer, double learning_rate) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_status(MIX_TYPE_ERROR, "optimizer_set_learning_rate: no optimizer");
  optimizer = mix_optimizer_plain(optimizer);
  if (isnan(learning_rate))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "optimizer_set_learning_rate: the rate is nan; expected a number");
  if (!optimizer->learning_rate)
    return mix_fail_status(MIX_TYPE_ERROR,
                           "optimizer_set_learning_rate: the learning rate of %s follows a schedule; "
                           "make the optimizer with a number to set it",
                           optimizer->name);
  mix_scope *scope = mix_scope_begin();
  mix_status status = mix_variable_assign(optimizer->learning_rate,
                                          mix_scalar(learning_rate, optimizer->learning_rate->dtype));
  if (scope) mix_scope_end(scope);
  return status;
}

static bool check_limit(const char *name, double limit) {
  if (isfinite(limit) && limit >= 0) return true;
  return mix_fail_value("optimizer_set_clipping: %s is %g; expected a positive number, or 0 for no limit",
                        name, limit);
}

mix_status mix_optimizer_set_clipping(mix_optimizer *optimizer, double clipnorm, double global_clipnorm,
                                      double clipvalue) {
  static const char call[] = "optimizer_set_clipping";
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_status(MIX_TYPE_ERROR, "%s: no optimizer", call);
  optimizer = mix_optimizer_plain(optimizer);
  if (!check_limit("clipnorm", clipnorm) || !check_limit("global_clipnorm", global_clipnorm) ||
      !check_limit("clipvalue", clipvalue) ||
      !check_clipping(optimizer->rules, call, clipnorm, global_clipnorm, clipvalue))
    return mix_error();
  if (optimizer->wrapped && optimizer->semantics->wrapper_clip_refused && (clipnorm != 0 || clipvalue != 0))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: clipnorm=%g and clipvalue=%g of %s, which a loss-scale optimizer wraps; of "
                           "this generation it allows only global_clipnorm",
                           call, clipnorm, clipvalue, optimizer->name);
  if (optimizer->shards && optimizer->options.common.gradient_accumulation_steps &&
      (clipnorm > 0 || global_clipnorm > 0))
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "%s: the accumulated gradients of %s are divided among the ranks, who know no norm "
        "of them; give clipnorm or global_clipnorm when the optimizer is made",
        call, optimizer->name);
  optimizer->options.common.clipnorm = clipnorm;
  optimizer->options.common.global_clipnorm = global_clipnorm;
  optimizer->options.common.clipvalue = clipvalue;
  mix_capture_epoch_move(); /* a limit is a constant of the captures */
  return MIX_OK;
}

mix_list *mix_optimizer_variables(mix_optimizer *optimizer) {
  if (mix_failed()) return NULL;
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_type("optimizer_variables: no optimizer");
  mix_list *list = mix_list_new(0, NULL);
  if (optimizer->inner && optimizer->semantics->wrapper_state_in_variables) {
    mix_loss_scale *scale = optimizer->loss_scale;
    void *own[] = {optimizer->iterations, optimizer->learning_rate, mix_loss_scale_good_steps(scale),
                   mix_loss_scale_variable(scale)};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) mix_list_append(list, own[i]);
  }
  mix_list *state = mix_optimizer_plain(optimizer)->variables;
  for (int i = 0; i < mix_list_count(state); i++) mix_list_append(list, mix_list_get(state, i));
  return mix_failed() ? NULL : list;
}

mix_variable *mix_optimizer_slot(mix_optimizer *optimizer, mix_variable *variable, const char *name) {
  if (!mix_is(optimizer, &mix_optimizer_object_class) || !mix_is(variable, &mix_variable_class) || !name)
    return NULL;
  optimizer = mix_optimizer_plain(optimizer);
  int index = mix_optimizer_index(optimizer, variable, -1);
  if (index < 0) return NULL;
  if (!strcmp(name, "average")) return optimizer->averages ? optimizer->averages[index] : NULL;
  if (!strcmp(name, "gradient_accumulator"))
    return optimizer->accumulators ? optimizer->accumulators[index] : NULL;
  for (int slot = 0; slot < MIX_MAX_SLOTS; slot++)
    for (int generation = 0; generation < 3; generation++) {
      const char *known = optimizer->class->slot_names[slot][generation];
      if (known && !strcmp(known, name)) return optimizer->slots[slot] ? optimizer->slots[slot][index] : NULL;
    }
  return NULL;
}

mix_tensor *mix_optimizer_applied(const mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) ? optimizer->applied : NULL;
}
