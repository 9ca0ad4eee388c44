/* Optimizers, and the loss-scale optimizer that wraps one. An update is element-wise graph over (variable,
 * gradient) in the stored dtype of each variable; it works inside and outside captured functions.
 * Differences between the generations of Keras (order of clipping, epsilon, moving averages, counting of
 * skipped steps) follow the semantics that an optimizer was created with. */
#ifndef MIXTAPE_OPTIMIZER_H
#define MIXTAPE_OPTIMIZER_H

#include <mixtape/policy.h>
#include <mixtape/tape.h>

MIX_BEGIN_DECLARATIONS

/* A learning rate that is a function of the step: see schedule.h. */
typedef struct mix_schedule mix_schedule;

/* Options of every optimizer. 0 means Keras's default, which is None except for learning_rate and
 * ema_momentum. */
#define MIX_OPTIMIZER_FIELDS                                                                                 \
  size_t size;                                                                                               \
  double learning_rate;   /* 0: the class's default; MIX_ZERO is accepted */                                 \
  mix_schedule *schedule; /* instead of learning_rate; ValueError with both */                               \
  /* decoupled: w -= w * weight_decay * learning_rate before the update */                                   \
  double weight_decay;                                                                                       \
  double clipnorm;        /* g * c / max(|g|, c), for each variable */                                       \
  double global_clipnorm; /* the same with the norm of all gradients together */                             \
  double clipvalue;       /* clip(g, -c, c) */                                                               \
  bool use_ema;           /* keep a moving average of each weight */                                         \
  double ema_momentum;    /* 0: 0.99; MIX_ZERO is accepted; in [0, 1] */                                     \
  /* every n-th step sets the weights to their averages; MIX_INT_ZERO: never; 0: never, except RMSprop of    \
     tf_keras: 100 */                                                                                        \
  int64_t ema_overwrite_frequency;                                                                           \
  /* a fixed loss scale: mix_optimizer_scale_loss multiplies by it, the update divides by it. ValueError of  \
     the build if float32 (of float64 variables: float64) does not hold it or its reciprocal */              \
  double loss_scale_factor;                                                                                  \
  /* at least 2: every n-th call updates with the mean of n gradients */                                     \
  int64_t gradient_accumulation_steps;                                                                       \
  /* experimental and legacy: learning_rate / (1 + decay * iterations); Nadam: the decay of its momentum     \
     schedule (0: 0.004; MIX_ZERO is accepted); otherwise ignored */                                         \
  double decay;                                                                                              \
  /* the optimizer family of TensorFlow 2.1 to 2.10, which experimental always uses */                       \
  bool legacy;                                                                                               \
  /* NULL: the class name, in keras3 in its snake case ("rm_sprop", "adam_w") */                             \
  const char *name;                                                                                          \
  const mix_semantics *semantics; /* NULL: the default of the process */                                     \
  /* How slots are kept, and weights in bfloat16: see MIX_STATE below. NULL: "float32" */                    \
  const char *state;                                                                                         \
  uint64_t state_seed; /* of "bfloat16-stochastic"; 0: from the global seed, in a fit that of rank 0 */

/* MIX_STATE. "float32": each slot has the dtype of its variable, as in Keras. The others keep the slots of
 * float32 and bfloat16 variables in bfloat16, at half of float32's memory, compute the update in float32, and
 * round each slot, and each weight in bfloat16, once:
 * - "bfloat16": to nearest. A change of less than half the spacing of bfloat16 numbers is lost each time: a
 *   second moment with beta_2 = 0.999 hardly moves.
 * - "bfloat16-stochastic": up or down by chance, so that the mean is the number itself (Gupta and others,
 *   2015). The random bits are Philox's of state_seed, step, variable and element: the same for any number of
 *   threads and ranks, and after a resume.
 * - "bfloat16-kahan": to nearest; each weight in bfloat16 has a second bfloat16 number, which keeps what the
 *   rounding took and is added in the next step (Kahan, 1965).
 * Weights are in bfloat16, without a float32 copy, under the policy "bfloat16" (and in layers of that dtype);
 * under "mixed_bfloat16" and "mixed_float16" they stay float32, and only slots take less memory.
 * ValueError of the build for weights of another dtype, and for "bfloat16-kahan" without a weight in
 * bfloat16. Row-sparse gradients are made dense. Keras's configs have neither option. */

typedef struct mix_sgd_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.01 */
      double momentum; /* in [0, 1] */
  bool nesterov;
} mix_sgd_options;
/* SGD: v = momentum * v - lr * g; w += v, or w += momentum * v - lr * g (Nesterov). */
MIX_API mix_optimizer *mix_sgd_with(const mix_sgd_options *options);
/* mix_..._defaults(): options with `size` set, for C++. */
MIX_API mix_sgd_options mix_sgd_defaults(void);

typedef struct mix_rmsprop_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
      double rho;      /* 0: 0.9; MIX_ZERO is accepted */
  double momentum;
  double epsilon; /* 0: 1e-7; MIX_ZERO is accepted */
  bool centered;  /* divide by the estimated variance, not the second moment */
} mix_rmsprop_options;
/* RMSprop: v = rho * v + (1 - rho) * g^2; w -= lr * g / sqrt(v + epsilon). The legacy family without
 * momentum: / (sqrt(v) + epsilon). Tieleman and Hinton, lecture 6.5, 2012. */
MIX_API mix_optimizer *mix_rmsprop_with(const mix_rmsprop_options *options);
MIX_API mix_rmsprop_options mix_rmsprop_defaults(void);

typedef struct mix_adam_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
      double beta_1;   /* 0: 0.9; MIX_ZERO is accepted */
  double beta_2;       /* 0: 0.999; MIX_ZERO is accepted */
  double epsilon;      /* 0: 1e-7; MIX_ZERO is accepted */
  bool amsgrad;
  bool adaptive_epsilon; /* only tf_keras: epsilon * sqrt(1 - beta_2^t) */
} mix_adam_options;
/* Adam: Kingma and Ba, 2015 (the form with epsilon hat). amsgrad: Reddi, Kale and Kumar, 2018. */
MIX_API mix_optimizer *mix_adam_with(const mix_adam_options *options);
MIX_API mix_adam_options mix_adam_defaults(void);

/* AdamW: Adam with a default weight_decay of 0.004 (MIX_ZERO: none). Loshchilov and Hutter, 2019. */
MIX_API mix_optimizer *mix_adamw_with(const mix_adam_options *options);

typedef struct mix_adagrad_options {
  MIX_OPTIMIZER_FIELDS                  /* learning_rate 0.001 */
      double initial_accumulator_value; /* 0: 0.1; MIX_ZERO is accepted */
  double epsilon;                       /* 0: 1e-7; MIX_ZERO is accepted */
} mix_adagrad_options;
/* Adagrad: a += g^2; w -= lr * g / sqrt(a + epsilon); experimental: / (sqrt(a) + epsilon). Duchi, Hazan
 * and Singer, 2011. */
MIX_API mix_optimizer *mix_adagrad_with(const mix_adagrad_options *options);
MIX_API mix_adagrad_options mix_adagrad_defaults(void);

typedef struct mix_adadelta_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
      double rho;      /* 0: 0.95; MIX_ZERO is accepted */
  double epsilon;      /* 0: 1e-7; MIX_ZERO is accepted */
} mix_adadelta_options;
/* Adadelta: Zeiler, 2012. */
MIX_API mix_optimizer *mix_adadelta_with(const mix_adadelta_options *options);
MIX_API mix_adadelta_options mix_adadelta_defaults(void);

typedef struct mix_adamax_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
      double beta_1;   /* 0: 0.9; MIX_ZERO is accepted */
  double beta_2;       /* 0: 0.999; MIX_ZERO is accepted */
  double epsilon;      /* 0: 1e-7; MIX_ZERO is accepted */
} mix_adamax_options;
/* Adamax: Adam with the infinity norm (Kingma and Ba, 2015, section 7). */
MIX_API mix_optimizer *mix_adamax_with(const mix_adamax_options *options);
MIX_API mix_adamax_options mix_adamax_defaults(void);
/* Nadam: Adam with Nesterov momentum (Dozat, 2016). */
MIX_API mix_optimizer *mix_nadam_with(const mix_adamax_options *options);

typedef struct mix_lion_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001, tf_keras 0.0001 */
      double beta_1;   /* 0: 0.9; MIX_ZERO is accepted */
  double beta_2;       /* 0: 0.99; MIX_ZERO is accepted */
} mix_lion_options;
/* Lion: w -= lr * sign(beta_1 * m + (1 - beta_1) * g). Chen and others, 2023. */
MIX_API mix_optimizer *mix_lion_with(const mix_lion_options *options);
MIX_API mix_lion_options mix_lion_defaults(void);

typedef struct mix_ftrl_options {
  MIX_OPTIMIZER_FIELDS              /* learning_rate 0.001 */
      double learning_rate_power;   /* 0: -0.5; MIX_ZERO is accepted; must not be positive */
  double initial_accumulator_value; /* 0: 0.1; MIX_ZERO is accepted */
  double l1_regularization_strength, l2_regularization_strength, l2_shrinkage_regularization_strength, beta;
} mix_ftrl_options;
/* FTRL: follow the regularized leader. McMahan and others, 2013. */
MIX_API mix_optimizer *mix_ftrl_with(const mix_ftrl_options *options);
MIX_API mix_ftrl_options mix_ftrl_defaults(void);

typedef struct mix_lamb_options {
  MIX_OPTIMIZER_FIELDS /* learning_rate 0.001 */
      double beta_1;   /* 0: 0.9; MIX_ZERO is accepted */
  double beta_2;       /* 0: 0.999; MIX_ZERO is accepted */
  double epsilon;      /* 0: 1e-7; MIX_ZERO is accepted */
} mix_lamb_options;
/* LAMB: Adam's step r, scaled to the norm of the weight: w -= lr * |w| / |r| * r. You and others, 2020. */
MIX_API mix_optimizer *mix_lamb_with(const mix_lamb_options *options);
MIX_API mix_lamb_options mix_lamb_defaults(void);

typedef struct mix_adafactor_options {
  MIX_OPTIMIZER_FIELDS     /* learning_rate 0.001; effective: at most 1 / sqrt(step) */
      double beta_2_decay; /* 0: -0.8; MIX_ZERO is accepted */
  double epsilon_1;        /* 0: 1e-30; MIX_ZERO is accepted */
  /* 0: 1e-3; MIX_ZERO is accepted. The lower bound of a weight's root mean square. */
  double epsilon_2;
  double clip_threshold; /* 0: 1 */
  /* Has no effect, as in Keras: 1 / sqrt(step) bounds the learning rate in either case. */
  bool no_relative_step;
} mix_adafactor_options;
/* Adafactor: second moments of matrices from row and column means. Shazeer and Stern, 2018. */
MIX_API mix_optimizer *mix_adafactor_with(const mix_adafactor_options *options);
MIX_API mix_adafactor_options mix_adafactor_defaults(void);

typedef struct mix_muon_options {
  MIX_OPTIMIZER_FIELDS    /* learning_rate 0.001; weight_decay 0: 0.004 (MIX_ZERO: none), of Muon's own */
      double adam_beta_1; /* 0: 0.9; MIX_ZERO is accepted */
  double adam_beta_2;     /* 0: 0.999; MIX_ZERO is accepted */
  double epsilon;         /* Adam's; 0: 1e-7; MIX_ZERO is accepted */
  /* Variables whose name matches one of these regular expressions (Python's re.search) are Adam's too. Ended
   * by NULL; copied. NULL: none. In text "fc1;out". ValueError for what is no regular expression, Unsupported
   * for backreferences, look-arounds and flags. */
  const char *const *exclude_layers;
  double muon_a, muon_b, muon_c; /* of the iteration; 0: 3.4445, -4.775, 2.0315; MIX_ZERO is accepted */
  double adam_lr_ratio;          /* Adam's share of the learning rate; 0: 1; MIX_ZERO is accepted */
  double momentum;               /* 0: 0.95; MIX_ZERO is accepted */
  int64_t ns_steps;              /* steps of the iteration; 0: 5; MIX_INT_ZERO is accepted */
  bool no_nesterov;
  bool include_embeddings;  /* matrices whose name has "embedding" in it are Muon's, not Adam's */
  double adam_weight_decay; /* of Adam's variables, biases too; 0: 0.004; MIX_ZERO: none */
  double rms_rate;          /* 0: 0.2; MIX_ZERO: Keras's None, steps are not scaled by the matrix's size */
} mix_muon_options;
/* Muon (only Keras 3): the momentum of each matrix, made about orthogonal by `ns_steps` steps of a
 * Newton-Schulz iteration; w -= lr * O(g + momentum * m) * sqrt(max(rows, columns)) * rms_rate. Variables of
 * another rank, embeddings and excluded ones follow Adam, as in Keras. Jordan and others, 2024. */
MIX_API mix_optimizer *mix_muon_with(const mix_muon_options *options);
MIX_API mix_muon_options mix_muon_defaults(void);

typedef struct mix_schedule_free_adamw_options {
  MIX_OPTIMIZER_FIELDS  /* learning_rate 0.0025 */
      double beta_1;    /* 0: 0.9; not MIX_ZERO */
  double beta_2;        /* 0: 0.999; MIX_ZERO is accepted */
  double epsilon;       /* 0: 1e-8; MIX_ZERO is accepted */
  int64_t warmup_steps; /* the learning rate grows to its full value in so many steps */
} mix_schedule_free_adamw_options;
/* ScheduleFreeAdamW (only Keras 3): AdamW whose weights are an average over the steps. As in Keras that
 * average forgets the weights' initial values where a captured function (so mix_model_fit) makes the state:
 * call mix_optimizer_build before the first step, and it starts at them. Defazio and others, 2024. */
MIX_API mix_optimizer *mix_schedule_free_adamw_with(const mix_schedule_free_adamw_options *options);
MIX_API mix_schedule_free_adamw_options mix_schedule_free_adamw_defaults(void);

#ifndef __cplusplus
/* mix_rmsprop(.learning_rate = 0.01) */
#define mix_sgd(...)                                                                                         \
  mix_sgd_with(MIX_ARGUMENTS("mix_sgd", "!learning_rate", #__VA_ARGS__, mix_sgd_options, __VA_ARGS__))
#define mix_rmsprop(...)                                                                                     \
  mix_rmsprop_with(                                                                                          \
      MIX_ARGUMENTS("mix_rmsprop", "!learning_rate", #__VA_ARGS__, mix_rmsprop_options, __VA_ARGS__))
#define mix_adam(...)                                                                                        \
  mix_adam_with(MIX_ARGUMENTS("mix_adam", "!learning_rate", #__VA_ARGS__, mix_adam_options, __VA_ARGS__))
#define mix_adamw(...)                                                                                       \
  mix_adamw_with(MIX_ARGUMENTS("mix_adamw", "!learning_rate", #__VA_ARGS__, mix_adam_options, __VA_ARGS__))
#define mix_adagrad(...)                                                                                     \
  mix_adagrad_with(                                                                                          \
      MIX_ARGUMENTS("mix_adagrad", "!learning_rate", #__VA_ARGS__, mix_adagrad_options, __VA_ARGS__))
#define mix_adadelta(...)                                                                                    \
  mix_adadelta_with(                                                                                         \
      MIX_ARGUMENTS("mix_adadelta", "!learning_rate", #__VA_ARGS__, mix_adadelta_options, __VA_ARGS__))
#define mix_adamax(...)                                                                                      \
  mix_adamax_with(                                                                                           \
      MIX_ARGUMENTS("mix_adamax", "!learning_rate", #__VA_ARGS__, mix_adamax_options, __VA_ARGS__))
#define mix_nadam(...)                                                                                       \
  mix_nadam_with(MIX_ARGUMENTS("mix_nadam", "!learning_rate", #__VA_ARGS__, mix_adamax_options, __VA_ARGS__))
#define mix_lion(...)                                                                                        \
  mix_lion_with(MIX_ARGUMENTS("mix_lion", "!learning_rate", #__VA_ARGS__, mix_lion_options, __VA_ARGS__))
#define mix_ftrl(...)                                                                                        \
  mix_ftrl_with(MIX_ARGUMENTS("mix_ftrl", "!learning_rate", #__VA_ARGS__, mix_ftrl_options, __VA_ARGS__))
#define mix_lamb(...)                                                                                        \
  mix_lamb_with(MIX_ARGUMENTS("mix_lamb", "!learning_rate", #__VA_ARGS__, mix_lamb_options, __VA_ARGS__))
#define mix_adafactor(...)                                                                                   \
  mix_adafactor_with(                                                                                        \
      MIX_ARGUMENTS("mix_adafactor", "!learning_rate", #__VA_ARGS__, mix_adafactor_options, __VA_ARGS__))
#define mix_muon(...)                                                                                        \
  mix_muon_with(MIX_ARGUMENTS("mix_muon", "!learning_rate", #__VA_ARGS__, mix_muon_options, __VA_ARGS__))
#define mix_schedule_free_adamw(...)                                                                         \
  mix_schedule_free_adamw_with(MIX_ARGUMENTS("mix_schedule_free_adamw", "!learning_rate", #__VA_ARGS__,      \
                                             mix_schedule_free_adamw_options, __VA_ARGS__))
#endif

/* An optimizer by Keras's name in any case ("rmsprop"), with Keras's defaults. ValueError for an unknown
 * name. */
MIX_API mix_optimizer *mix_optimizer_from_name(const char *name);
/* An optimizer from text: "sgd:learning_rate=0.1,momentum=0.9,nesterov=true". ValueError, which lists the
 * known keys, for an unknown key. semantics NULL: the default of the process. */
MIX_API mix_optimizer *mix_optimizer_from_text(const char *text, const mix_semantics *semantics);
/* An optimizer, also a loss-scale optimizer, from {"class_name": "SGD", "config": {...}} as
 * mix_optimizer_serialize writes it. */
MIX_API mix_optimizer *mix_optimizer_deserialize(const char *json, const mix_semantics *semantics);
/* The same from a config alone, with the class name given. */
MIX_API mix_optimizer *mix_optimizer_from_config(const char *class_name, const char *json,
                                                 const mix_semantics *semantics);
/* The config, and class name with config, as JSON in the form of the generation. Of the state only the
 * learning rate is included. The strings live until the next call with the same optimizer. */
MIX_API const char *mix_optimizer_get_config(mix_optimizer *optimizer);
MIX_API const char *mix_optimizer_serialize(mix_optimizer *optimizer);

/* The name, as given or by default, and Keras's class name, "SGD". The strings live as long as the
 * process. */
MIX_API const char *mix_optimizer_name(const mix_optimizer *optimizer);
MIX_API const char *mix_optimizer_class_name(const mix_optimizer *optimizer);

/* Creates the state for these variables (a list). Otherwise the first update does it. State that starts as
 * copies of the weights (ScheduleFreeAdamW) has their values now. */
MIX_API mix_status mix_optimizer_build(mix_optimizer *optimizer, mix_list *variables);
/* Excludes variables from weight_decay: those listed, and those whose name matches one of the POSIX
 * extended regular expressions ("bias", "^dense_1", "kernel|bias"). Call it before build. An invalid
 * expression is a ValueError that names it, and nothing changes. */
MIX_API mix_status mix_optimizer_exclude_from_weight_decay(mix_optimizer *optimizer, mix_list *variables,
                                                           int name_count, const char *const *names);
/* Marks a variable whose gradient becomes its new value (statistics of 8-bit training). */
MIX_API mix_status mix_optimizer_overwrite_with_gradient(mix_optimizer *optimizer, mix_variable *variable);

/* One update. gradients[i], a tensor or NULL, belongs to variables[i]; all NULL is a ValueError. A plain
 * optimizer takes true gradients, a loss-scale optimizer of tf_keras or experimental unscaled ones, and
 * one of keras3 scaled ones. With a dynamic loss scale a non-finite gradient skips the step: no weight and
 * no slot changes. */
MIX_API mix_status mix_optimizer_apply_gradients(mix_optimizer *optimizer, mix_list *gradients,
                                                 mix_list *variables);
/* Computes gradients and applies them; a loss-scale optimizer scales the loss and unscales the gradients.
 * The tape must have recorded `loss`. */
MIX_API mix_status mix_optimizer_minimize(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape,
                                          mix_list *variables);
/* The same from a function that computes the loss; it is recorded here. */
typedef mix_tensor *(*mix_loss_function)(void *context);
MIX_API mix_status mix_optimizer_minimize_function(mix_optimizer *optimizer, mix_loss_function loss,
                                                   void *context, mix_list *variables);

/* The gradients for mix_optimizer_apply_gradients (unscaled, except in keras3): one for each variable,
 * NULL if the loss does not depend on it. */
MIX_API mix_list *mix_optimizer_compute_gradients(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape,
                                                  mix_list *variables);
MIX_API mix_list *mix_optimizer_compute_gradients_of(mix_optimizer *optimizer, mix_loss_function loss,
                                                     void *context, mix_list *variables);

/* For any optimizer: the loss to differentiate, and one update from the gradients of that loss. These are
 * keras3's scale_loss and apply. */
MIX_API mix_tensor *mix_optimizer_scale_loss(mix_optimizer *optimizer, mix_tensor *loss);
MIX_API mix_status mix_optimizer_apply(mix_optimizer *optimizer, mix_list *scaled_gradients,
                                       mix_list *variables);

/* The number of steps. keras3 with gradient accumulation counts updates. A step that loss scaling skipped
 * counts in tf_keras and experimental, not in keras3. */
MIX_API int64_t mix_optimizer_iterations(mix_optimizer *optimizer);
/* The int64 counter itself. Borrowed. */
MIX_API mix_variable *mix_optimizer_iterations_variable(mix_optimizer *optimizer);
/* The learning rate of the next step; with a schedule, its value there. */
MIX_API double mix_optimizer_learning_rate(mix_optimizer *optimizer);
/* Sets the learning rate. TypeError if it follows a schedule. */
MIX_API mix_status mix_optimizer_set_learning_rate(mix_optimizer *optimizer, double learning_rate);
/* Sets the three limits of gradient clipping, also of an optimizer in use, as assigning `clipnorm`,
 * `global_clipnorm` and `clipvalue` of Keras's optimizers does; 0: none. The next update uses them: captured
 * functions are captured again, and their former plans are dropped. For a loss-scale optimizer the limits are
 * the inner one's. ValueError, and nothing changes, for what the constructor refuses: a limit that is
 * negative or not finite, more than one limit in the semantics of Keras 3 (elsewhere clipnorm with
 * global_clipnorm), and a limit other than global_clipnorm under an experimental loss-scale optimizer. */
MIX_API mix_status mix_optimizer_set_clipping(mix_optimizer *optimizer, double clipnorm,
                                              double global_clipnorm, double clipvalue);
/* The variable of the learning rate, borrowed; NULL with a schedule. */
MIX_API mix_variable *mix_optimizer_learning_rate_variable(mix_optimizer *optimizer);
/* A list of all state variables in Keras's order: iteration, learning rate, averages, accumulators, slots.
 * For a loss-scale optimizer those of the inner one; in keras3 after four of its own. What Keras does not
 * have comes last: the seed of stochastic rounding, and what Kahan's rounding keeps. */
MIX_API mix_list *mix_optimizer_variables(mix_optimizer *optimizer);
/* The slot of a variable by name ("momentum", "velocity"), borrowed; NULL if there is none. */
MIX_API mix_variable *mix_optimizer_slot(mix_optimizer *optimizer, mix_variable *variable, const char *name);
/* Sets the weights to their moving averages, at the end of training. Does nothing without use_ema. */
MIX_API mix_status mix_optimizer_finalize_variable_values(mix_optimizer *optimizer, mix_list *variables);

#define MIX_EVERY_RANK (-1)
/* Where the state is divided among the ranks (mix_distribution_shard): rank `rank`, or MIX_EVERY_RANK, gets
 * the whole state and weights, as they are now, to read or save them, or to train on with another
 * distribution. The next step leaves them divided. Collective. Does nothing where nothing is divided.
 * ValueError if there is no such rank; RuntimeError in a captured function, and if another distribution is
 * set than the one among whose ranks the state is divided. */
MIX_API mix_status mix_optimizer_gather_state(mix_optimizer *optimizer, int rank);

/* ---- loss scaling ---- */
typedef struct mix_loss_scale_optimizer_options {
  size_t size;
  /* Required. TypeError if it is not an optimizer or scales the loss itself, ValueError if it is already
   * wrapped. */
  mix_optimizer *inner;
  bool fixed; /* Keras: dynamic=True; keras3: ValueError (use loss_scale_factor) */
  /* 0: not given, 2^15 if dynamic, ValueError if fixed; MIX_ZERO is accepted, as in Keras. ValueError if
   * float32 does not hold it or its reciprocal: NaN, infinite, or nearly 0. */
  double initial_scale;
  int64_t dynamic_growth_steps; /* 0: not given, 2000; MIX_INT_ZERO is accepted; ValueError if fixed */
  /* experimental: required, retained, with any multiplier. tf_keras: the deprecated class, converted. */
  mix_loss_scale *loss_scale;
  const char *name;               /* keras3 */
  const mix_semantics *semantics; /* NULL: the inner optimizer's */
} mix_loss_scale_optimizer_options;
/* An optimizer that scales the loss before differentiation and unscales the gradients. With a dynamic
 * scale it skips steps whose gradients are not finite. Retains the inner optimizer, which must not be used
 * directly. */
MIX_API mix_optimizer *mix_loss_scale_optimizer_with(const mix_loss_scale_optimizer_options *options);
#ifndef __cplusplus
/* mix_loss_scale_optimizer(mix_sgd(), .initial_scale = 8, .fixed = true) */
#define mix_loss_scale_optimizer(...)                                                                        \
  mix_loss_scale_optimizer_with(MIX_ARGUMENTS("mix_loss_scale_optimizer", "inner", #__VA_ARGS__,             \
                                              mix_loss_scale_optimizer_options, .inner = __VA_ARGS__))
#endif
/* The optimizer that compile uses under a policy. It is wrapped if the generation requires it (tf_keras
 * and keras3: a policy named mixed_float16; experimental: a policy with a loss scale) and it is not
 * wrapped yet. */
MIX_API mix_optimizer *mix_optimizer_for_policy(mix_optimizer *optimizer, const mix_policy *policy);

/* True for a loss-scale optimizer. */
MIX_API bool mix_optimizer_scales_loss(const mix_optimizer *optimizer);
/* The wrapped optimizer, borrowed; NULL for a plain one. */
MIX_API mix_optimizer *mix_optimizer_inner(const mix_optimizer *optimizer);
/* Properties of the loss scale: dynamic or not, initial scale, growth steps (0 if fixed). False, 0 and 0
 * for a plain optimizer. */
MIX_API bool mix_optimizer_dynamic(const mix_optimizer *optimizer);
MIX_API double mix_optimizer_initial_scale(const mix_optimizer *optimizer);
MIX_API int64_t mix_optimizer_dynamic_growth_steps(const mix_optimizer *optimizer);
/* The current scale, a float32 scalar: of the loss scale, or the loss_scale_factor of a plain optimizer;
 * NULL if there is none. May be captured. */
MIX_API mix_tensor *mix_optimizer_loss_scale(mix_optimizer *optimizer);
/* The object with scale and counter, borrowed; NULL for a plain optimizer. */
MIX_API mix_loss_scale *mix_optimizer_loss_scale_object(const mix_optimizer *optimizer);
/* The int64 count of finite steps since the last change, borrowed; NULL if fixed or plain. */
MIX_API mix_variable *mix_optimizer_dynamic_counter(const mix_optimizer *optimizer);
/* The number of steps that were skipped because a gradient was infinite or NaN, since the loss scale was
 * created; 0 if it is fixed or the optimizer is plain. */
MIX_API int64_t mix_optimizer_skipped_steps(const mix_optimizer *optimizer);
/* loss * cast(scale, dtype of loss). AttributeError for a plain optimizer and for keras3, which has
 * scale_loss. */
MIX_API mix_tensor *mix_optimizer_get_scaled_loss(mix_optimizer *optimizer, mix_tensor *loss);
/* Keras's form for a callable: the scaled result of the function. */
MIX_API mix_tensor *mix_optimizer_get_scaled_loss_of(mix_optimizer *optimizer, mix_loss_function loss,
                                                     void *context);
/* g * cast(1 / scale, dtype of g) for each gradient; NULL stays NULL. AttributeError as above. */
MIX_API mix_list *mix_optimizer_get_unscaled_gradients(mix_optimizer *optimizer, mix_list *gradients);
/* A bool scalar, borrowed until the next apply and part of the same capture: true if the latest apply
 * updated the weights. NULL: it updated unconditionally. */
MIX_API mix_tensor *mix_optimizer_applied(const mix_optimizer *optimizer);

MIX_END_DECLARATIONS
#endif
