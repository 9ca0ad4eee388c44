/* The rules of each generation, a field for each row of spec/mixed-precision.md, section 10 (and of spec/layers.md where the
 * generations differ). Code asks for a rule, never for the generation. */
#ifndef MIX_NN_POLICY_SEMANTICS_H
#define MIX_NN_POLICY_SEMANTICS_H

#include <mixtape/semantics.h>

/* When `compile` wraps an optimizer in loss scaling. */
typedef enum mix_auto_wrap {
  MIX_AUTO_WRAP_POLICY_LOSS_SCALE, /* the model's policy carries a loss scale: with that object */
  MIX_AUTO_WRAP_MIXED_FLOAT16,     /* the model's policy is named mixed_float16: dynamic defaults */
} mix_auto_wrap;

/* What several clip arguments of one optimizer mean. */
typedef enum mix_clip_rule {
  MIX_CLIP_ONE,   /* more than one: ValueError */
  MIX_CLIP_FIRST, /* clipnorm and global_clipnorm: ValueError; else clipnorm, global_clipnorm, clipvalue, the first that is set */
  MIX_CLIP_ALL,   /* clipvalue, then clipnorm, then global_clipnorm; the last two together: ValueError */
} mix_clip_rule;

struct mix_semantics {
  const char *name;

  /* policy */
  bool policy_has_loss_scale;       /* X */
  bool policy_equal_by_name;        /* K3 */
  bool policy_infer;                /* "_infer" is a policy */
  bool policy_quantized;            /* int8_from_... are policies */
  bool policy_unknown_names_plain;  /* any dtype name of the framework (complex64, string, ...) */
  bool policy_always_dict;          /* K3: serialised as an object even for plain float32 */
  bool policy_module_in_dict;       /* L, K3: module and registered_name beside class_name and config */
  const char *policy_class;         /* "Policy", "DTypePolicy" */
  const char *policy_module;        /* "keras.mixed_precision", "keras" */
  bool global_none_resets;          /* set_global_policy(None) resets to floatx; else ValueError */
  bool global_non_float_allowed;
  bool global_stored_at_first_read; /* K3: a later change of floatx does not move it */
  bool global_refused_by_rewrite;   /* a mixed policy is refused while the graph rewrite is enabled */
  bool device_check;                /* constructing mixed_float16 reports on the GPUs */
  bool device_check_bfloat16;       /* constructing mixed_bfloat16 uses the report up in silence */

  /* layers */
  bool all_arguments_cast;          /* K3; else the first argument alone */
  bool cast_before_input_spec;      /* K3 */
  bool autocast_scope_by_difference;/* K3: a scope is entered where the compute dtype differs from the outer scope's or the variables' */
  bool autocast_non_float_refused;  /* K3: AutocastScope("int32") is a ValueError */
  bool assign_add_reads_cast_value; /* K3: assign_add is assign(value + x) in the cast dtype */
  bool autocast_all_variables;      /* K3: every floating variable may cast itself; else only those of mixed policies */
  bool frozen_weights_unregularized;/* K3: penalties on weights that are not trained do not count */
  bool weights_trainable_first;     /* L: `weights` is all trainable ones of the nest, then all others */
  const char *input_layer_name;     /* K3 "input_layer" (then _1); else NULL: "input_1", "input_2", ... */
  bool private_name_prefix;         /* L: "private" before names that start with an underscore */
  bool layer_norm_input_cast;       /* L, X; K3: LayerNormalization and GroupNormalization take inputs uncast */
  bool batch_norm_unbiased_moving_variance; /* of the fused path */
  bool batch_norm_update_subtracts; /* L: moving -= (moving - batch) * (1 - momentum); K3: moving * momentum + batch * (1 - momentum) */
  bool norm_output_clipped;         /* K3 moments: clipped to +-65504 before the down-cast */
  bool normalization_weights_in_compute_dtype;
  bool batch_norm_fused;            /* L: inputs of rank 4 and 5 follow the fused kernel's rules, and fused=True may demand them */
  bool batch_norm_float32_weights;  /* L: float32 where the policy's variables are 16-bit */
  bool layer_norm_fused;            /* L: trailing axes, epsilon from 1.001e-5, float32 variables: gamma and beta are applied in the
                                     * input's dtype; else 16-bit inputs are widened where the variables are float32. K3: always widened */
  bool layer_norm_axes_sorted;      /* K3; else gamma and beta have the axes in the order given */
  bool group_norm_widened;          /* K3: in float32; L: in the compute dtype */
  bool unit_norm_by_rsqrt;          /* K3: rsqrt(max(sum of squares, 1e-24)), of cosine similarities 1e-14 */
  bool category_encoding_checked;   /* L: an id outside is an error; K3: zeros */
  bool category_encoding_in_variable_dtype; /* K3; else in the compute dtype */
  bool loss_in_floatx;              /* K3; else the loss runs in the output's dtype */
  bool cross_entropy_epsilon_in_logs; /* L: binary cross-entropy adds epsilon inside the logs */
  bool mean_with_sample_weight;     /* K3 knows that reduction, and "mean" */
  bool loss_expands_vectors;        /* K3: of (batch) against (batch, 1) the first gains a dimension; else the second loses one, and weights
                                     * with a dimension more than the values are a ValueError */
  bool categorical_focal_by_logits; /* L: remembered logits are used, as by the other cross-entropies */
  bool ignore_class_forgets_logits; /* K3: with ignore_class remembered logits are not used */
  bool huber_in_floatx;             /* L: huber runs in floatx whatever the output's dtype */
  bool metrics_in_float64;          /* L, X: under the policy float64 their state is float64, in K3 of floatx */
  const char *learning_rate_log;    /* what callbacks call it in logs: L, X "lr", K3 "learning_rate" */
  bool learning_rate_log_numpy;     /* L, X: it is a NumPy number, which a CSV shows as 0.001; K3: a float, 0.0010000000474974513 */
  bool metric_inputs_uncast;        /* K3: values are computed in y_pred's dtype (class ids above 2048 are inexact in float16); else in the
                                     * metric's */
  bool metric_values_by_sample;     /* K3: means count samples, else elements */
  bool metric_crossentropy_chosen;  /* L: "crossentropy" and "ce" are names of metrics, chosen by shapes as "accuracy" is; K3: of losses */
  bool compile_labels_gain_column;  /* L: compile shows losses and metrics labels (batch) as (batch, 1) beside predictions of rank 2 */
  bool binary_cross_entropy_broadcasts; /* L: labels against probabilities; against logits neither generation broadcasts */
  bool metric_mask_is_weight;       /* L: compile's metrics get the mask of the predictions as weights */
  bool metric_negatives_last;       /* K3: confusion counts are true, false positives, true, false negatives; else the true ones first */
  bool metric_ratio_epsilon;        /* K3: f-scores and IoU divide by x + epsilon; else x / 0 is 0 */
  bool metric_iou_integer;          /* K3: IoU counts in int64, and leaves out class numbers outside; else in floatx, an error */
  bool hard_sigmoid_relu6;          /* K3: relu6(x + 3) / 6; else clip(0.2 x + 0.5, 0, 1) */
  bool activation_names_all;        /* K3's longer list */
  bool softmax_vector_refused;      /* L: softmax of a rank-1 input is a ValueError */
  bool leaky_relu_alpha;            /* L, X: LeakyReLU's slope is called alpha in configs; K3: negative_slope */
  bool config_without_trainable;    /* K3: SpatialDropout and Discretization have no `trainable` in their configs, and take none */
  double l1_l2_default;             /* of the string "l1_l2": K3 0, L 0.01 */
  bool history_keys_sorted;         /* K3 */
  bool rnn_casts_initial_state;     /* K3 */

  bool merge_keeps_any;             /* K3: merging layers keep what any mask keeps, and all where an input has none; Multiply, Maximum and
                                     * Minimum leave out what a mask drops. Else: what all masks keep */
  bool preprocessing_passes_masks;  /* K3: Rescaling and Normalization do */

  /* masks: what is put (K3 layer) or added (L layer) or subtracted (attention) */
  double softmax_mask_float16, softmax_mask;         /* Softmax layer */
  bool softmax_mask_where;                           /* K3: where(mask, x, constant), and zeros afterwards; else x + constant */
  double attention_mask_float16, attention_mask;     /* Attention, AdditiveAttention: magnitudes */
  double attention_op_mask_float16, attention_op_mask; /* dot_product_attention */

  /* loss scaling */
  bool iteration_on_skip;           /* L: iterations + 1 on a skipped step too */
  double scale_floor;               /* 1; K3: 0, none */
  bool scale_capped;                /* growth that is not finite is refused; K3: becomes infinite */
  bool growth_at_equality;          /* K3: grows when good_steps == period - 1; else when good_steps + 1 >= period */
  bool finite_test_scaled;          /* K3: the test sees scaled gradients, and apply takes them */
  bool loss_scale_multiplier_two;   /* L, K3: any other multiplier is a ValueError where a wrapper takes it */
  bool wrapper_clip_refused;        /* X: an inner optimizer with clip arguments is a ValueError */
  bool wrapper_warns_unused;        /* L: warns when neither scaling nor unscaling was called */
  bool wrapper_nested_refused;      /* L: wrapping a wrapper is a TypeError, wrapping an optimizer twice a ValueError */
  bool wrapper_state_in_variables;  /* K3: its own variables come before the inner ones */
  bool wrapper_dynamic_argument;    /* L: dynamic=; K3 refuses dynamic=False (ValueError naming loss_scale_factor) */
  bool optimizer_loss_scale_factor; /* K3: loss_scale_factor of any optimizer */
  mix_auto_wrap auto_wrap;
  bool auto_wrap_optional;          /* K3: compile(auto_scale_loss=) */

  /* optimizers (spec/layers.md, 12) */
  bool rmsprop_epsilon_outside;     /* X (OptimizerV2), without momentum: lr g / (sqrt(v) + epsilon) */
  bool rmsprop_rate_with_root;      /* L: g (lr / sqrt(v + epsilon)), else (lr g) / sqrt(v + epsilon) */
  bool adagrad_epsilon_outside;     /* X */
  bool adamax_bias_outside;         /* X: lr / (1 - beta_1^t) * m / (u + epsilon) */
  double nadam_schedule_decay;      /* exponent factor of 0.96: 1; X 0.004 */
  double lion_learning_rate;        /* K3 0.001, L 0.0001 */
  mix_clip_rule clip_rule;
  bool integer_learning_rate_refused; /* K3 */
  bool learning_rate_decay;         /* X: decay=, lr / (1 + decay * iterations) */
  int64_t ema_overwrite_frequency_rmsprop; /* L 100, else 0 */
  bool adam_adaptive_epsilon;       /* L knows it (default off) */
  bool sparse_updates;              /* L, X: rows are updated as rows where the optimizer says so; K3: dense */
  bool iteration_variable_named_iter; /* X: "iter", else "iteration" */
  bool gradient_accumulation;       /* K3: gradient_accumulation_steps= */
  bool unknown_keyword_refused;
  int slot_names;                   /* which of an optimizer's names for a slot: 0 X ("rms", "m"), 1 L ("velocity", "m"), 2 K3 ("velocity", "momentum") */
  bool optimizer_name_lower_case;   /* K3: the default name is "sgd"; else "SGD" */
  bool ema_starts_at_weight;        /* L: averages start as copies of the weights; K3: at zero, the first step taking the weight whole */
  bool gradients_cast;              /* K3: a gradient of another dtype than its variable's is cast; else TypeError */
  bool slots_slot_by_slot;          /* X: slots are made one kind after the other (but Ftrl's), else variable after variable */
  bool config_says_not_legacy;      /* L: configs hold jit_compile and is_legacy_optimizer */
  bool nadam_product_uncast;        /* K3: Nadam's product takes beta_1 and 0.96 as they are; else cast by way of float32 */
  bool schedules_named;             /* K3: a learning rate schedule without a name is called by its class's */
  bool hyperparameters_in_variables; /* X: betas, rho and momentum are float32 variables, and 1 - beta is computed from them */
  bool nadam_product_per_variable;  /* L, inside a tf.function: Nadam's product advances with each variable but one (adamax.c), else once a step */
  bool sgd_slot_always;             /* L: SGD keeps a slot without momentum too */
};

extern const mix_semantics mix_semantics_tf_keras, mix_semantics_keras3, mix_semantics_experimental;

/* `given`, else the process's. */
static inline const mix_semantics *mix_semantics_or_current(const mix_semantics *given) { return given ? given : mix_semantics_current(); }

/* An option whose zero means `standard` and whose MIX_ZERO means zero. */
static inline double mix_option_number(double given, double standard) { return given == MIX_ZERO ? 0.0 : given == 0 ? standard : given; }

#endif
