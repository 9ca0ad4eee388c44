/* Optimizers, and the loss-scale optimizer that wraps one. An update is element-wise graph over (variable, gradient): it works inside
 * a captured function and outside one, in the true dtype of each variable. What differs between the generations of Keras (order of
 * clipping, epsilon, moving averages, what a skipped step counts) follows the semantics that an optimizer was made with. */
#ifndef MIXTAPE_OPTIMIZER_H
#define MIXTAPE_OPTIMIZER_H

#include <mixtape/loss_scale.h>
#include <mixtape/object.h>
#include <mixtape/policy.h>
#include <mixtape/semantics.h>
#include <mixtape/tape.h>
#include <mixtape/variable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A learning rate that is a function of the step: see schedule.h. */
typedef struct mix_schedule mix_schedule;

/* What every optimizer takes. 0 means Keras's default, None for all but learning_rate and ema_momentum. */
#define MIX_OPTIMIZER_FIELDS                                                                                                   \
  size_t size;                                                                                                                 \
  double learning_rate;                /* 0: the class's default; MIX_ZERO */                                                  \
  mix_schedule *schedule;              /* instead of learning_rate */                                                          \
  double weight_decay;                 /* decoupled: w -= w * weight_decay * learning_rate before the update */                \
  double clipnorm;                     /* g * c / max(|g|, c), for each variable */                                            \
  double global_clipnorm;              /* the same with the norm of all gradients together */                                  \
  double clipvalue;                    /* clip(g, -c, c) */                                                                    \
  bool use_ema;                        /* keep a moving average of each weight */                                              \
  double ema_momentum;                 /* 0: 0.99; MIX_ZERO; in [0, 1] */                                                      \
  int64_t ema_overwrite_frequency;     /* weights take their averages every n-th step; 0: never, but for RMSprop of tf_keras   \
                                          every 100th; MIX_INT_ZERO: never */                                                  \
  double loss_scale_factor;            /* a fixed loss scale: mix_optimizer_scale_loss multiplies, applying divides */         \
  int64_t gradient_accumulation_steps; /* at least 2: update on every n-th call with the mean of n gradients */                \
  double decay;                        /* experimental and legacy: learning_rate / (1 + decay * iterations), but Nadam's is its  \
                                          schedule's (0: 0.004; MIX_ZERO); else ignored */                                     \
  bool legacy;                         /* the optimizer family of TensorFlow 2.1 to 2.10, which experimental always uses */    \
  const char *name;                    /* NULL: the class name, for keras3 in its snake case ("rm_sprop", "adam_w") */    \
  const mix_semantics *semantics;      /* NULL: the process's */

typedef struct mix_sgd_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.01 */
  double momentum;     /* in [0, 1] */
  bool nesterov;
} mix_sgd_options;
/* v = momentum * v - lr * g; w += v, or w += momentum * v - lr * g (Nesterov). */
MIX_API mix_optimizer *mix_sgd_with(const mix_sgd_options *options);
MIX_API mix_sgd_options mix_sgd_defaults(void);

typedef struct mix_rmsprop_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
  double rho;          /* 0: 0.9; MIX_ZERO */
  double momentum;
  double epsilon;      /* 0: 1e-7; MIX_ZERO */
  bool centered;       /* divide by the estimated variance, not the second moment */
} mix_rmsprop_options;
/* v = rho * v + (1 - rho) * g^2; w -= lr * g / sqrt(v + epsilon), the legacy family without momentum: / (sqrt(v) + epsilon).
 * Tieleman and Hinton, lecture 6.5, 2012. */
MIX_API mix_optimizer *mix_rmsprop_with(const mix_rmsprop_options *options);
MIX_API mix_rmsprop_options mix_rmsprop_defaults(void);

typedef struct mix_adam_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
  double beta_1;       /* 0: 0.9; MIX_ZERO */
  double beta_2;       /* 0: 0.999; MIX_ZERO */
  double epsilon;      /* 0: 1e-7; MIX_ZERO */
  bool amsgrad;
  bool adaptive_epsilon; /* tf_keras alone: epsilon * sqrt(1 - beta_2^t) */
} mix_adam_options;
/* Kingma and Ba, 2015 (the form with epsilon hat); amsgrad: Reddi, Kale and Kumar, 2018. */
MIX_API mix_optimizer *mix_adam_with(const mix_adam_options *options);
MIX_API mix_adam_options mix_adam_defaults(void);

/* Adam with weight_decay 0.004 by default (MIX_ZERO: none). Loshchilov and Hutter, 2019. */
MIX_API mix_optimizer *mix_adamw_with(const mix_adam_options *options);

typedef struct mix_adagrad_options {
  MIX_OPTIMIZER_FIELDS              /* learning_rate 0.001 */
  double initial_accumulator_value; /* 0: 0.1; MIX_ZERO */
  double epsilon;                   /* 0: 1e-7; MIX_ZERO */
} mix_adagrad_options;
/* a += g^2; w -= lr * g / sqrt(a + epsilon), experimental: / (sqrt(a) + epsilon). Duchi, Hazan and Singer, 2011. */
MIX_API mix_optimizer *mix_adagrad_with(const mix_adagrad_options *options);
MIX_API mix_adagrad_options mix_adagrad_defaults(void);

typedef struct mix_adadelta_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
  double rho;          /* 0: 0.95; MIX_ZERO */
  double epsilon;      /* 0: 1e-7; MIX_ZERO */
} mix_adadelta_options;
/* Zeiler, 2012. */
MIX_API mix_optimizer *mix_adadelta_with(const mix_adadelta_options *options);
MIX_API mix_adadelta_options mix_adadelta_defaults(void);

typedef struct mix_adamax_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
  double beta_1;       /* 0: 0.9; MIX_ZERO */
  double beta_2;       /* 0: 0.999; MIX_ZERO */
  double epsilon;      /* 0: 1e-7; MIX_ZERO */
} mix_adamax_options;
/* Adam with the infinity norm (Kingma and Ba, 2015, section 7). */
MIX_API mix_optimizer *mix_adamax_with(const mix_adamax_options *options);
MIX_API mix_adamax_options mix_adamax_defaults(void);
/* Adam with Nesterov momentum (Dozat, 2016); the same options. */
MIX_API mix_optimizer *mix_nadam_with(const mix_adamax_options *options);

typedef struct mix_lion_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001, tf_keras 0.0001 */
  double beta_1;       /* 0: 0.9; MIX_ZERO */
  double beta_2;       /* 0: 0.99; MIX_ZERO */
} mix_lion_options;
/* w -= lr * sign(beta_1 * m + (1 - beta_1) * g). Chen and others, 2023. */
MIX_API mix_optimizer *mix_lion_with(const mix_lion_options *options);
MIX_API mix_lion_options mix_lion_defaults(void);

typedef struct mix_ftrl_options {
  MIX_OPTIMIZER_FIELDS              /* learning_rate 0.001 */
  double learning_rate_power;       /* 0: -0.5; MIX_ZERO; not positive */
  double initial_accumulator_value; /* 0: 0.1; MIX_ZERO */
  double l1_regularization_strength, l2_regularization_strength, l2_shrinkage_regularization_strength, beta;
} mix_ftrl_options;
/* Follow the regularised leader (McMahan and others, 2013). */
MIX_API mix_optimizer *mix_ftrl_with(const mix_ftrl_options *options);
MIX_API mix_ftrl_options mix_ftrl_defaults(void);

typedef struct mix_lamb_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
  double beta_1;       /* 0: 0.9; MIX_ZERO */
  double beta_2;       /* 0: 0.999; MIX_ZERO */
  double epsilon;      /* 0: 1e-7; MIX_ZERO */
} mix_lamb_options;
/* Adam's step, r, scaled to the norm of what it changes: w -= lr * |w| / |r| * r. You and others, 2020. */
MIX_API mix_optimizer *mix_lamb_with(const mix_lamb_options *options);
MIX_API mix_lamb_options mix_lamb_defaults(void);

typedef struct mix_adafactor_options {
  MIX_OPTIMIZER_FIELDS   /* learning_rate 0.001; in force: at most 1 / sqrt(step) */
  double beta_2_decay;   /* 0: -0.8; MIX_ZERO */
  double epsilon_1;      /* 0: 1e-30; MIX_ZERO */
  double epsilon_2;      /* 0: 1e-3; MIX_ZERO; the least that stands for a weight's root mean square */
  double clip_threshold; /* 0: 1 */
  bool no_relative_step; /* as in Keras without effect: 1 / sqrt(step) bounds the learning rate either way */
} mix_adafactor_options;
/* Second moments of matrices from row and column means. Shazeer and Stern, 2018. */
MIX_API mix_optimizer *mix_adafactor_with(const mix_adafactor_options *options);
MIX_API mix_adafactor_options mix_adafactor_defaults(void);

#ifndef __cplusplus
/* mix_rmsprop(.learning_rate = 0.01) */
#define mix_sgd(...) mix_sgd_with(&(const mix_sgd_options){.size = sizeof(mix_sgd_options), __VA_ARGS__})
#define mix_rmsprop(...) mix_rmsprop_with(&(const mix_rmsprop_options){.size = sizeof(mix_rmsprop_options), __VA_ARGS__})
#define mix_adam(...) mix_adam_with(&(const mix_adam_options){.size = sizeof(mix_adam_options), __VA_ARGS__})
#define mix_adamw(...) mix_adamw_with(&(const mix_adam_options){.size = sizeof(mix_adam_options), __VA_ARGS__})
#define mix_adagrad(...) mix_adagrad_with(&(const mix_adagrad_options){.size = sizeof(mix_adagrad_options), __VA_ARGS__})
#define mix_adadelta(...) mix_adadelta_with(&(const mix_adadelta_options){.size = sizeof(mix_adadelta_options), __VA_ARGS__})
#define mix_adamax(...) mix_adamax_with(&(const mix_adamax_options){.size = sizeof(mix_adamax_options), __VA_ARGS__})
#define mix_nadam(...) mix_nadam_with(&(const mix_adamax_options){.size = sizeof(mix_adamax_options), __VA_ARGS__})
#define mix_lion(...) mix_lion_with(&(const mix_lion_options){.size = sizeof(mix_lion_options), __VA_ARGS__})
#define mix_ftrl(...) mix_ftrl_with(&(const mix_ftrl_options){.size = sizeof(mix_ftrl_options), __VA_ARGS__})
#define mix_lamb(...) mix_lamb_with(&(const mix_lamb_options){.size = sizeof(mix_lamb_options), __VA_ARGS__})
#define mix_adafactor(...) mix_adafactor_with(&(const mix_adafactor_options){.size = sizeof(mix_adafactor_options), __VA_ARGS__})
#endif

/* By Keras's name in any case ("rmsprop"), with Keras's defaults; unknown: ValueError. */
MIX_API mix_optimizer *mix_optimizer_from_name(const char *name);
/* "sgd:learning_rate=0.1,momentum=0.9,nesterov=true". An unknown key is a ValueError that lists the known ones. semantics NULL: the
 * process's. */
MIX_API mix_optimizer *mix_optimizer_from_text(const char *text, const mix_semantics *semantics);
/* From {"class_name": "SGD", "config": {...}} as mix_optimizer_serialize writes it, loss-scale optimizers included. */
MIX_API mix_optimizer *mix_optimizer_deserialize(const char *json, const mix_semantics *semantics);
/* From a config alone, of the class that is named. */
MIX_API mix_optimizer *mix_optimizer_from_config(const char *class_name, const char *json, const mix_semantics *semantics);
/* The config as JSON, as the generation's get_config writes it; without any state but the learning rate. The texts live until the
 * next call with the same optimizer. */
MIX_API const char *mix_optimizer_get_config(mix_optimizer *optimizer);
MIX_API const char *mix_optimizer_serialize(mix_optimizer *optimizer);

/* As given or by default; Keras's class name, "SGD". Live as long as the process. */
MIX_API const char *mix_optimizer_name(const mix_optimizer *optimizer);
MIX_API const char *mix_optimizer_class_name(const mix_optimizer *optimizer);

/* Makes the state for these variables (a list). The first apply does it where it has not been done. */
MIX_API mix_status mix_optimizer_build(mix_optimizer *optimizer, mix_list *variables);
/* Before build: variables, and those in whose name one of the texts is found, that weight_decay leaves alone. The texts are POSIX extended
 * regular expressions ("bias", "^dense_1", "kernel|bias"); one that is none is a ValueError that names it, and changes nothing. */
MIX_API mix_status mix_optimizer_exclude_from_weight_decay(mix_optimizer *optimizer, mix_list *variables, int name_count,
                                                           const char *const *names);
/* A variable that takes its gradient as its new value (statistics of 8-bit training). */
MIX_API mix_status mix_optimizer_overwrite_with_gradient(mix_optimizer *optimizer, mix_variable *variable);

/* One update. gradients[i], a tensor or NULL, belongs to variables[i]; all NULL is a ValueError. A plain optimizer takes true
 * gradients, a loss-scale optimizer of tf_keras and experimental unscaled ones, one of keras3 scaled ones. A gradient that is not
 * finite skips the step of a dynamic loss scale: no weight and no slot changes. */
MIX_API mix_status mix_optimizer_apply_gradients(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables);
/* Differentiates, scaling the loss and unscaling the gradients where the optimizer does so, and applies. The tape recorded loss. */
MIX_API mix_status mix_optimizer_minimize(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape, mix_list *variables);
/* The same from a function that computes the loss, recorded here. */
typedef mix_tensor *(*mix_loss_function)(void *context);
MIX_API mix_status mix_optimizer_minimize_function(mix_optimizer *optimizer, mix_loss_function loss, void *context, mix_list *variables);

/* The first half of either: the gradients that mix_optimizer_apply_gradients takes (unscaled, but for keras3), one for each variable, NULL
 * where the loss does not depend on it. */
MIX_API mix_list *mix_optimizer_compute_gradients(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape, mix_list *variables);
MIX_API mix_list *mix_optimizer_compute_gradients_of(mix_optimizer *optimizer, mix_loss_function loss, void *context,
                                                     mix_list *variables);

/* The same two calls whatever the optimizer is: the loss to differentiate, and one update from the gradients of that loss. keras3's
 * scale_loss and apply. */
MIX_API mix_tensor *mix_optimizer_scale_loss(mix_optimizer *optimizer, mix_tensor *loss);
MIX_API mix_status mix_optimizer_apply(mix_optimizer *optimizer, mix_list *scaled_gradients, mix_list *variables);

/* Steps taken: keras3 with gradient accumulation counts updates. A step that loss scaling left out counts in tf_keras and experimental, not
 * in keras3. */
MIX_API int64_t mix_optimizer_iterations(mix_optimizer *optimizer);
/* The int64 counter itself. Borrowed. */
MIX_API mix_variable *mix_optimizer_iterations_variable(mix_optimizer *optimizer);
/* The learning rate of the next step, of a schedule its value there. */
MIX_API double mix_optimizer_learning_rate(mix_optimizer *optimizer);
/* TypeError where the learning rate follows a schedule. */
MIX_API mix_status mix_optimizer_set_learning_rate(mix_optimizer *optimizer, double learning_rate);
/* NULL with a schedule. Borrowed. */
MIX_API mix_variable *mix_optimizer_learning_rate_variable(mix_optimizer *optimizer);
/* All state in Keras's order: iteration, learning rate, averages, accumulators, slots. A loss-scale optimizer: its inner's, for
 * keras3 after four of its own. */
MIX_API mix_list *mix_optimizer_variables(mix_optimizer *optimizer);
/* The slot of a variable by its name ("momentum", "velocity"); NULL where there is none. Borrowed. */
MIX_API mix_variable *mix_optimizer_slot(mix_optimizer *optimizer, mix_variable *variable, const char *name);
/* Weights take their moving averages (end of training); nothing without use_ema. */
MIX_API mix_status mix_optimizer_finalize_variable_values(mix_optimizer *optimizer, mix_list *variables);

/* ---- loss scaling ---- */
typedef struct mix_loss_scale_optimizer_options {
  size_t size;
  mix_optimizer *inner;           /* required; TypeError if it is none or scales the loss itself, ValueError if already wrapped */
  bool fixed;                     /* Keras: dynamic=True; keras3: ValueError (loss_scale_factor does it) */
  double initial_scale;           /* 0: none given, 2^15 where dynamic, ValueError where fixed; MIX_ZERO. Not checked, as in Keras */
  int64_t dynamic_growth_steps;   /* 0: none given, 2000; MIX_INT_ZERO; ValueError where fixed */
  mix_loss_scale *loss_scale;     /* experimental: required and kept, any multiplier; tf_keras: the deprecated class, converted */
  const char *name;               /* keras3 */
  const mix_semantics *semantics; /* NULL: the inner optimizer's */
} mix_loss_scale_optimizer_options;
/* An optimizer that scales the loss before the gradients are taken, unscales them, and leaves out steps whose gradients are not finite where
 * it is dynamic. Keeps the inner one, which is not to be used beside it. */
MIX_API mix_optimizer *mix_loss_scale_optimizer_with(const mix_loss_scale_optimizer_options *options);
#ifndef __cplusplus
/* mix_loss_scale_optimizer(mix_sgd(), .initial_scale = 8, .fixed = true) */
#define mix_loss_scale_optimizer(...)                                                                                          \
  mix_loss_scale_optimizer_with(                                                                                               \
      &(const mix_loss_scale_optimizer_options){.size = sizeof(mix_loss_scale_optimizer_options), .inner = __VA_ARGS__})
#endif
/* The optimizer that compile uses under a policy: wrapped where the generation wraps (tf_keras and keras3: a policy named
 * mixed_float16; experimental: a policy with a loss scale) and it is not wrapped yet, else itself. */
MIX_API mix_optimizer *mix_optimizer_for_policy(mix_optimizer *optimizer, const mix_policy *policy);

/* Does it scale the loss (is it a loss-scale optimizer)? */
MIX_API bool mix_optimizer_scales_loss(const mix_optimizer *optimizer);
/* The wrapped optimizer; NULL for a plain one. Borrowed. */
MIX_API mix_optimizer *mix_optimizer_inner(const mix_optimizer *optimizer);
/* Of the loss scale: does it change; what it started at. False, 0 and 0 for a plain optimizer. */
MIX_API bool mix_optimizer_dynamic(const mix_optimizer *optimizer);
MIX_API double mix_optimizer_initial_scale(const mix_optimizer *optimizer);
MIX_API int64_t mix_optimizer_dynamic_growth_steps(const mix_optimizer *optimizer); /* 0 where fixed */
/* The scale now, a float32 scalar: of a loss scale, or the loss_scale_factor of a plain optimizer; NULL where it has none. Works inside
 * captures. */
MIX_API mix_tensor *mix_optimizer_loss_scale(mix_optimizer *optimizer);
/* The object that holds scale and counter; NULL for a plain optimizer. Borrowed. */
MIX_API mix_loss_scale *mix_optimizer_loss_scale_object(const mix_optimizer *optimizer);
/* int64, good steps since the last change; NULL where fixed or plain. Borrowed. */
MIX_API mix_variable *mix_optimizer_dynamic_counter(const mix_optimizer *optimizer);
/* Steps that loss scaling left out because a gradient was infinite or NaN, since its loss scale was made; 0 where it is fixed or plain. */
MIX_API int64_t mix_optimizer_skipped_steps(const mix_optimizer *optimizer);
/* loss * cast(scale, loss's dtype). AttributeError for a plain optimizer and for keras3, which has scale_loss. */
MIX_API mix_tensor *mix_optimizer_get_scaled_loss(mix_optimizer *optimizer, mix_tensor *loss);
/* Keras's form for a callable: the scaled result of the function. */
MIX_API mix_tensor *mix_optimizer_get_scaled_loss_of(mix_optimizer *optimizer, mix_loss_function loss, void *context);
/* g * cast(1 / scale, g's dtype) for each; NULL stays NULL. AttributeError as above. */
MIX_API mix_list *mix_optimizer_get_unscaled_gradients(mix_optimizer *optimizer, mix_list *gradients);
/* Did the latest apply update (a bool scalar, part of the same capture)? NULL: yes, unconditionally. Borrowed until the next apply. */
MIX_API mix_tensor *mix_optimizer_applied(const mix_optimizer *optimizer);

#ifdef __cplusplus
}
#endif
#endif
