/* The rules of each generation: a field for each row of docs/spec/mixed_precision.md, section 10, and of
 * docs/spec/keras.md where the generations differ. Code tests a rule, never the generation, and a field has
 * the one meaning of its comment. In comments L is tf_keras, X experimental and K3 keras3. */
#ifndef MIX_NN_POLICY_SEMANTICS_H
#define MIX_NN_POLICY_SEMANTICS_H

#include <mixtape/status.h>
#include <mixtape/semantics.h>
#include <stddef.h>

/* When compile wraps an optimizer in a loss scale optimizer. */
typedef enum mix_auto_wrap {
  MIX_AUTO_WRAP_POLICY_LOSS_SCALE, /* the model's policy has a loss scale object, which is used */
  /* the model's policy is named mixed_float16: a dynamic loss scale with defaults */
  MIX_AUTO_WRAP_MIXED_FLOAT16,
} mix_auto_wrap;

/* The effect of several clip arguments of one optimizer. */
typedef enum mix_clip_rule {
  MIX_CLIP_ONE, /* more than one: ValueError */
  /* clipnorm with global_clipnorm: ValueError; else the first one set of clipnorm, global_clipnorm,
   * clipvalue */
  MIX_CLIP_FIRST,
  /* clipvalue, then clipnorm, then global_clipnorm; the last two together: ValueError */
  MIX_CLIP_ALL,
} mix_clip_rule;

/* The name of an optimizer's state variable for a weight. */
typedef enum mix_state_path {
  MIX_STATE_OPTIMIZER_WEIGHT_SLOT, /* "RMSprop/dense/kernel/rms" */
  MIX_STATE_SLOT_WEIGHT,           /* "m/dense/kernel" */
  MIX_STATE_FLAT,                  /* "adam/dense_kernel_momentum" */
} mix_state_path;

struct mix_semantics {
  const char *name;

  /* policy */
  bool policy_has_loss_scale;      /* X */
  bool policy_equal_by_name;       /* K3 */
  bool policy_infer;               /* "_infer" is a policy */
  bool policy_quantized;           /* int8_from_... are policies */
  bool policy_unknown_names_plain; /* any dtype name of the framework (complex64, string, ...) is accepted */
  bool policy_always_dict;         /* K3: serialized as an object even for plain float32 */
  bool objects_have_module;        /* L, K3: saved objects have module and registered_name */
  bool policy_name_optional;       /* K3: without a name, the global policy's */
  const char *policy_class;        /* "Policy", "DTypePolicy" */
  const char *policy_module;       /* "keras.mixed_precision", "keras" */
  bool global_none_resets;         /* set_global_policy(None) resets to floatx; else ValueError */
  bool global_non_float_allowed;
  bool global_stored_at_first_read; /* K3: a later change of floatx has no effect on it */
  bool global_refused_by_rewrite;   /* a mixed policy is an error while the graph rewrite is enabled */
  bool device_check;                /* constructing mixed_float16 logs the GPU check */
  bool device_check_bfloat16;       /* constructing mixed_bfloat16 uses up the check, silently */

  /* layers */
  bool all_arguments_cast;     /* K3; else only the first argument */
  bool cast_before_input_spec; /* K3 */
  /* K3: a scope opens where the compute dtype differs from that of the outer scope or of the variables */
  bool autocast_scope_by_difference;
  bool autocast_non_float_refused;  /* K3: AutocastScope("int32") is a ValueError */
  bool assign_add_reads_cast_value; /* K3: assign_add is assign(value + x) in the cast dtype */
  /* K3: every floating variable can cast itself; else only those of mixed policies */
  bool autocast_all_variables;
  bool frozen_weights_unregularized; /* K3: weights that are not trained have no penalties */
  /* L, X: `weights` of a layer that is no model lists all trainable weights of its nest, then all others */
  bool weights_trainable_first;
  /* K3: "input_layer" (then _1); NULL: "input_1", "input_2", ... */
  const char *input_layer_name;
  const char *functional_name; /* of a functional model: K3 "functional", else "model" (then _1) */
  bool private_name_prefix;    /* L: "private" precedes names that start with an underscore */
  /* L, X; K3: LayerNormalization and GroupNormalization do not cast inputs */
  bool layer_norm_input_cast;
  bool batch_norm_unbiased_moving_variance; /* of the fused path */
  /* L: moving -= (moving - batch) * (1 - momentum); K3: moving * momentum + batch * (1 - momentum) */
  bool batch_norm_update_subtracts;
  bool norm_output_clipped; /* K3: moments are clipped to +-65504 before the downcast */
  bool normalization_weights_in_compute_dtype;
  /* L: inputs of rank 4 and 5 follow the rules of the fused kernel, and fused=True may require them */
  bool batch_norm_fused;
  bool batch_norm_float32_weights; /* L: float32 if the policy's variables are 16-bit */
  /* L: with trailing axes, epsilon of at least 1.001e-5 and float32 variables, gamma and beta are applied in
   * the input's dtype; otherwise 16-bit inputs are upcast if the variables are float32. K3: always upcast */
  bool layer_norm_fused;
  /* K3; else gamma and beta keep the axes in the order given */
  bool layer_norm_axes_sorted;
  bool group_norm_widened;      /* K3: computed in float32; L: in the compute dtype */
  bool group_norm_weights_cast; /* L, X: weights are read as the compute dtype; K3: as they are */
  /* K3: rsqrt(max(sum of squares, 1e-24)); cosine similarity uses 1e-14 */
  bool unit_norm_by_rsqrt;
  bool average_pooling_size_required; /* K3; else 2 */
  bool interpolations_fewer;          /* K3: no area, gaussian, mitchellcubic */
  bool resizing_keeps_integers;       /* K3: of integer images; else they become floating */
  bool pooling_masks_by_select;       /* K3: masked steps are replaced by 0; else multiplied by 0 */
  bool random_flip_once;              /* K3: one draw for both directions */
  /* K3: factors of rotations and contrasts lie in [-1, 1] and [0, 1] and are saved as a pair (lower, upper);
   * else as given */
  bool random_factors_resolved;
  bool random_factors_sorted;     /* K3; else a pair that descends is a ValueError */
  bool random_contrast_for_each;  /* K3: a number for each image; else one for the batch */
  bool config_image_data_format;  /* K3: configs of layers for images have data_format and other options */
  bool category_encoding_checked; /* L: an id out of range is an error; K3: zeros */
  bool category_encoding_in_variable_dtype; /* K3; else in the compute dtype */
  bool loss_in_floatx;                      /* K3; else the loss is computed in the output's dtype */
  bool loss_names_all;                      /* K3 has the losses of loss_kind.keras3_only */
  bool cross_entropy_epsilon_in_logs;       /* L: binary cross-entropy adds epsilon inside the logarithms */
  bool mean_with_sample_weight;             /* K3 has this reduction, and "mean" */
  /* K3: of (batch) and (batch, 1), the first gains a dimension. Else the second loses one, and weights with
   * one more dimension than the values are a ValueError */
  bool loss_expands_vectors;
  bool categorical_focal_by_logits; /* L: uses remembered logits, as the other cross-entropies do */
  bool ignore_class_forgets_logits; /* K3: with ignore_class, remembered logits are ignored */
  bool huber_in_floatx;             /* L: huber computes in floatx, independent of the output's dtype */
  bool metrics_in_float64;          /* L, X: under policy float64 the state is float64; K3: floatx */
  const char *learning_rate_log;    /* its name in logs of callbacks: L, X "lr", K3 "learning_rate" */
  /* L, X: a NumPy number, which a CSV shows as 0.001; K3: a float, 0.0010000000474974513 */
  bool learning_rate_log_numpy;
  /* K3: values are computed in y_pred's dtype, so that class ids above 2048 are inexact in float16; else in
   * the metric's dtype */
  bool metric_inputs_uncast;
  bool metric_functions_aligned; /* L, X: labels are cast and squeezed for functions of the user too */
  bool metric_values_by_sample;  /* K3: means count samples; else elements */
  bool metric_names_keras3;      /* the list and the default names of K3; else those of tf_keras */
  bool r2_count_integer;         /* L, X: R2Score counts samples in int32; K3: in its own dtype */
  /* L: "crossentropy" and "ce" name metrics, chosen by shape as "accuracy" is; K3: they name losses */
  bool metric_crossentropy_chosen;
  /* L: with predictions of rank 2, compile passes labels (batch) as (batch, 1) to losses and metrics */
  bool compile_labels_gain_column;
  /* L: labels broadcast against probabilities. Against logits neither generation broadcasts */
  bool binary_cross_entropy_broadcasts;
  bool metric_mask_is_weight; /* L: metrics of compile use the mask of the predictions as weights */
  /* K3: the confusion counts are true, false positives, true, false negatives; else both true counts come
   * first */
  bool metric_negatives_last;
  bool metric_ratio_epsilon; /* K3: f-scores and IoU divide by x + epsilon; else x / 0 is 0 */
  /* K3: IoU counts in int64 and ignores class numbers out of range; else in floatx, and they are an error */
  bool metric_iou_integer;
  bool hard_sigmoid_relu6;     /* K3: relu6(x + 3) / 6; else clip(0.2 x + 0.5, 0, 1) */
  bool activation_names_all;   /* the longer list of K3 */
  bool softmax_vector_refused; /* L: softmax of a rank-1 input is a ValueError */
  /* L, X: the slope of LeakyReLU is named alpha in configs; K3: negative_slope */
  bool leaky_relu_alpha;
  /* K3: configs of SpatialDropout and Discretization do not contain or accept `trainable` */
  bool config_without_trainable;
  double l1_l2_default; /* of the string "l1_l2": K3 0, L 0.01 */

  /* models as JSON (docs/spec/keras.md, 17) */
  bool node_objects; /* K3: a call is {"args", "kwargs"}; else a list of [layer, node, tensor, keywords] */
  bool nested_calls_from_one;   /* L, X: the calls of a nested model are numbered from 1 */
  bool model_ends_from_one;     /* K3: a model's ends count the calls of Functional ones from 1 */
  bool input_batch_input_shape; /* L, X: InputLayer and Embedding save batch_input_shape; K3: batch_shape */
  bool input_named_by_layer;    /* L, X: "dense_input", before the layer "dense" of a sequential model */
  /* K3: configs have options that the library does not offer: renorm, quantization_config, ... */
  bool config_newer_options;
  bool config_activity_regularizer; /* L, X: configs of Dense have it, also if there is none */
  bool config_spatial_noise_shape;  /* L, X: configs of SpatialDropout have noise_shape */
  /* L, X: configs of transposed, depthwise and separable convolutions have the inherited `groups`, and that
   * of Conv3DTranspose has no dilation_rate */
  bool config_conv_inherited;
  bool depthwise_kernel_named; /* L, X: a DepthwiseConv's weight is "depthwise_kernel"; K3: "kernel" */
  bool config_axes_resolved;   /* L, X: a built normalization saves a list of its axes counted from 0 */
  bool config_axes_listed;     /* K3: normalizations over several axes save a list in any case */
  bool json_has_version; /* L, X: to_json has class_name, config, keras_version and backend; K3: an object */
  const mix_semantics *saved_as; /* X: files are those of this generation; NULL: of the own one */
  const char *keras_version;     /* of files and of to_json */
  bool saved_objects_named;      /* K3: groups of weights have the name of their object as an attribute */
  bool h5_optimizer_unbuilt;     /* K3: that of an .h5 has no variables, and trains after a compile alone */
  bool saved_names_numbered;     /* L, X: names of weights in HDF5 files end in ":0" */
  const char *optimizer_package; /* L: of the class of an optimizer in .h5 files, "Custom>SGD" */
  bool bfloat16_saved;           /* K3 reads bfloat16 from .weights.h5; else weights are saved as float32 */
  const char *functional_module;
  const char *source_package;    /* of classes that have no public module: "keras.src" */
  bool sequential_saves_policy;  /* K3: with trainable, dtype and build_input_shape */
  bool build_shapes_named;       /* K3: the build_config of a layer of several tensors names their shapes */
  bool functional_saves_shape;   /* L: the shape in its build_config; K3: null */
  bool built_from_start_unsaved; /* K3: layers that are built when they are made have no build_config */
  bool compile_config_always;    /* K3: {} before compile */
  bool compile_metrics_before_weights; /* L: the order of the entries of a compile config */
  bool saved_names_skip_seen;     /* L: paths of weights do not count layers that stand at an earlier path */
  bool optimizer_in_weights_file; /* L, K3; X: only .h5 has the state of an optimizer */
  bool learning_rate_saved;       /* K3: the saved state of an optimizer has its learning rate */
  bool nadam_product_saved;       /* K3, X */
  bool summary_boxes;             /* K3: rich's table, and the optimizer's state counts */
  bool compile_defaults_saved; /* K3: run_eagerly and jit_compile false, steps_per_execution 1; else null */

  /* compile and fit (docs/spec/keras.md, 11 and 13 to 15) */
  bool history_keys_sorted;       /* K3: the keys of logs and of a history are sorted */
  bool output_names_unique;       /* L, X: outputs of one layer are named "lstm", "lstm_1"; K3: alike */
  bool metric_names_numbered;     /* K3: a second metric of one name gets "_1"; else ValueError */
  bool metric_named_as_requested; /* K3: logged under the text of the request; else under the object's name */
  bool weighted_metrics_last;     /* K3: behind those of all outputs; else behind their own output's */
  bool single_loss_as_total;      /* K3: if one of several outputs has a loss, only the total is shown */
  bool class_weights_complete;    /* L, X: keys must be 0 to n - 1, labels below n; K3: 1 where missing */
  bool output_dicts_partial;      /* L, X: a dict of labels or weights may lack outputs; K3: ValueError */
  bool unused_inputs_warned;      /* L, X: a dict of inputs with a name that is no input logs a warning */
  bool layer_names_keras3;  /* K3 has the layers of layer_kind.keras3_only; else those of tf_keras_only */
  bool class_weights_alone; /* K3: with sample weights ValueError; else the two are multiplied */
  /* K3: with steps_per_epoch, arrays repeat as often as needed; else once an epoch */
  bool arrays_repeat;
  /* K3: with steps_per_epoch, an epoch that begins at the end of the data starts over */
  bool epoch_restarts_data;
  bool epoch_ends_with_data; /* K3: data that run out end the epoch; else the training */
  /* K3: mode auto takes the direction of the metric; else that of the name */
  bool monitor_by_metric;
  /* K3: a callback's first value is an improvement; else only if it is better than infinity */
  bool monitor_first_improves;
  /* K3: ReduceLROnPlateau adds |min_delta| to the value; else min_delta, of either sign, to the best */
  bool plateau_delta_on_value;
  bool checkpoint_saves_unmonitored; /* K3: ModelCheckpoint saves if the monitored value is missing */
  bool progress_dashes;              /* K3: the progress output of 15.1; else of 15.2 */
  bool progbar_arguments; /* L, X: ProgbarLogger has count_mode and stateful_metrics; K3: no arguments */
  bool progress_averages; /* L, X: numbers that are not the model's are averaged over the steps */

  /* K3: merging layers keep what any mask keeps, and everything if an input has no mask; Multiply, Maximum
   * and Minimum ignore masked elements. Else: what all masks keep */
  bool merge_keeps_any;
  bool preprocessing_passes_masks; /* K3: Rescaling and Normalization do */

  /* recurrent layers (docs/spec/keras.md, 4) */
  bool rnn_casts_initial_state;   /* K3: given states are cast to the cell's compute dtype */
  bool rnn_states_in_inputs;      /* L, X: given states follow the input in one list; K3: an argument */
  bool rnn_time_major;            /* L, X: has time_major, and saves it and `implementation` */
  bool bidirectional_keeps_layer; /* L, X: saves the given layer; K3: its forward copy */
  bool time_distributed_by_step;  /* K3: calls its layer on each step; else once on a batch of all steps */
  bool rnn_seed_saved;            /* K3: configs of LSTM, GRU and cells have the seed */
  bool conv_lstm_hard_sigmoid;    /* L, X: the default of ConvLSTM's recurrent_activation; K3: sigmoid */
  bool conv_lstm_sizes_known;     /* K3: a spatial size that is not known is a ValueError */
  bool einsum_activity_dropped;   /* L, X: EinsumDense drops its activity regularizer */
  bool einsum_fans_by_axes; /* K3: fans of EinsumDense's kernel are products of its summed and other axes */
  /* K3: scores and softmax of multi-head attention are in float32 where no scores are asked for and there is
   * no dropout; else in the compute dtype */
  bool attention_scores_float32;
  /* K3: masked scores of Attention become x - constant by a where; else by adding -constant * (1 - mask) */
  bool attention_mask_where;
  bool attention_newer_options; /* K3: attention layers have seed, use_gate and sliding_window */
  bool attention_shapes_saved; /* L, X: configs of MultiHeadAttention have the shapes that it was built for */
  /* K3: negative attention axes count from the last axis of the inputs; else of the projections */
  bool attention_axes_of_inputs;
  /* K3: an activity regularizer of multi-head attention is not of its own results, only of its projections */
  bool attention_activity_inner;
  /* K3: of layers with several named tensors, the mask that the first carries goes on to the result, not a
   * given one, which multi-head attention ignores altogether */
  bool attention_masks_carried;
  bool additive_attention_scales_query; /* K3: its scale has the query's dimension; else the value's */
  bool attention_properties_saved;      /* K3: files name the projections of MultiHeadAttention without '_' */

  double softmax_mask_float16, softmax_mask; /* replaces masked values, or is added to them */
  /* K3: where(mask, x, constant), then zeros; else x + constant */
  bool softmax_mask_where;

  /* loss scaling */
  bool iteration_on_skip; /* L: a skipped step counts as an iteration */
  double scale_floor;     /* 1; K3: 0, no floor */
  /* growth to a scale that is not finite is not applied; K3: the scale becomes infinite */
  bool scale_capped;
  /* K3: grows when good_steps == period - 1; else when good_steps + 1 >= period */
  bool growth_at_equality;
  bool finite_test_scaled; /* K3: the test reads scaled gradients, and apply accepts them */
  /* L, K3: any other multiplier is a ValueError when a wrapper gets it */
  bool loss_scale_multiplier_two;
  bool scaled_loss_widened; /* K3: a 16-bit loss times the scale is float32; else 16-bit */
  /* X: the wrapper takes a loss scale object, and its config is {optimizer, loss_scale}; else numbers */
  bool wrapper_takes_object;
  bool wrapper_reads_object_form;  /* X, L: a config {optimizer, loss_scale} is read */
  mix_status wrapper_inner_error;  /* of an inner object that is no optimizer: X ValueError, else TypeError */
  mix_status wrapper_nested_error; /* of wrapping a wrapper: X ValueError, L TypeError, K3 MIX_OK: none */
  bool wrapper_twice_refused;      /* L: wrapping an optimizer twice is a ValueError */
  bool wrapper_clip_refused;       /* X: an inner optimizer with clip arguments is a ValueError */
  bool wrapper_warns_unused;       /* L: warns if neither scaling nor unscaling was called */
  bool wrapper_fixed_refused;      /* K3: dynamic=False is a ValueError that names loss_scale_factor */
  bool wrapper_dynamic_argument;   /* L: `dynamic` is an argument, and in the config */
  bool wrapper_named;              /* K3: `name` is an argument, and in the config */
  bool wrapper_keywords_checked;   /* K3: keywords of the inner optimizer must have their defaults */
  bool wrapper_unscaled_loop;      /* X, L: get_scaled_loss and get_unscaled_gradients exist */
  bool wrapper_state_in_variables; /* K3: its own variables precede those of the inner optimizer */
  bool wrapper_class_by_family;    /* L: LossScaleOptimizerV3 around an optimizer that is not legacy */
  bool wrapper_h5_state_lost; /* L: that class never says that it is built, and begins anew after an .h5 */
  const char *wrapper_module; /* in configs */
  bool wrapper_registered;    /* L: its class has a registered name, which is the same */
  bool optimizer_loss_scale_factor; /* K3: every optimizer has loss_scale_factor */
  mix_auto_wrap auto_wrap;
  bool auto_wrap_optional; /* K3: compile(auto_scale_loss=); else TypeError */

  /* optimizers (docs/spec/keras.md, 12) */
  /* X (OptimizerV2), without momentum: lr g / (sqrt(v) + epsilon) */
  bool rmsprop_epsilon_outside;
  /* L: g (lr / sqrt(v + epsilon)); else (lr g) / sqrt(v + epsilon) */
  bool rmsprop_rate_with_root;
  bool adagrad_epsilon_outside; /* X */
  bool ftrl_zero_within_l1;     /* X: |z| <= l1 and a NaN in z give 0, whatever the divisor is */
  bool adamax_bias_outside;     /* X: lr / (1 - beta_1^t) * m / (u + epsilon) */
  double nadam_schedule_decay;  /* factor of the exponent of 0.96: 1; X 0.004 */
  double lion_learning_rate;    /* K3 0.001, L 0.0001 */
  mix_clip_rule clip_rule;
  bool integer_learning_rate_refused;      /* K3 */
  bool learning_rate_decay;                /* X: decay=, lr / (1 + decay * iterations) */
  bool nadam_schedule_refused;             /* X: Nadam takes no learning rate schedule */
  bool averages_and_weight_decay;          /* L, K3: every optimizer has use_ema and weight_decay */
  bool clip_omitted_if_none;               /* X: configs lack clip arguments that are not set; else null */
  int64_t ema_overwrite_frequency_rmsprop; /* L 100; else 0 */
  bool adam_adaptive_epsilon;              /* L has it (default off) */
  /* L, X: an optimizer first sums the rows of a sparse gradient that have the same index. K3: it squares
   * each of them, and sums the squares */
  bool sparse_repeats_summed;
  /* X: momenta and running means of most optimizers stay where a sparse gradient has no row */
  bool sparse_idle_rows_kept;
  bool sparse_constraint_refused;     /* X: a constraint on a variable with a sparse gradient: RuntimeError */
  bool iteration_variable_named_iter; /* X: "iter"; else "iteration" */
  bool gradient_accumulation;         /* K3: gradient_accumulation_steps= */
  mix_status unknown_keyword_error;   /* a config's unknown keyword: K3 ValueError, else TypeError */
  bool decay_keyword_ignored;         /* K3: `decay` in a config is a warning; L: ValueError */
  /* index of an optimizer's names for a slot: 0 X ("rms", "m"), 1 L ("velocity", "m"), 2 K3 ("velocity",
   * "momentum") */
  int slot_names;
  mix_state_path state_path;
  bool optimizer_name_lower_case; /* K3: the default name is "sgd"; else "SGD" */
  /* L: averages start as copies of the weights; K3: at zero, and the first step takes the weight itself */
  bool ema_starts_at_weight;
  bool gradients_cast; /* K3: a gradient of another dtype than its variable is cast; else TypeError */
  /* X: slots are created slot by slot (except those of Ftrl); else variable by variable */
  bool slots_slot_by_slot;
  /* K3: an optimizer in a loss-scale optimizer does not track, nor save, what is no slot of a variable */
  bool wrapped_state_untracked;
  bool missing_slots_counted;  /* K3: a slot of Adafactor that a vector lacks is an integer 0 in the state */
  bool config_says_not_legacy; /* L: configs contain jit_compile and is_legacy_optimizer */
  bool config_legacy_keys_ignored; /* L, K3: those two keys have no effect; X: they are unknown */
  /* K3: Nadam's product uses beta_1 and 0.96 unrounded; else they are cast through float32 */
  bool nadam_product_uncast;
  bool schedules_named; /* K3: an unnamed learning rate schedule takes the name of its class */
  /* X: betas, rho and momentum are float32 variables, from which 1 - beta is computed */
  bool hyperparameters_in_variables;
  /* L, inside a tf.function: Nadam's product advances with each variable except one (adamax.c); else once a
   * step */
  bool nadam_product_per_variable;
  bool sgd_slot_always; /* L: SGD has a slot even without momentum */
};

/* The rule of a row's `only` or `except`. */
#define MIX_RULE(rule) offsetof(mix_semantics, rule)

extern const mix_semantics mix_semantics_tf_keras, mix_semantics_keras3, mix_semantics_experimental;

/* `given`, or the current semantics of the process for NULL. A pointer to anything else is a TypeError, and
 * the current semantics are the result. */
const mix_semantics *mix_semantics_or_current(const mix_semantics *given);

/* A numeric option: 0 means `default_value` and MIX_ZERO means 0. */
static inline double mix_option_number(double given, double default_value) {
  return given == MIX_ZERO ? 0.0 : given == 0 ? default_value : given;
}

#endif
