/* The rules of the generations (docs/spec/mixed_precision.md, section 10; docs/spec/keras.md): L is tf_keras,
 * X experimental, K3 keras3. The file is included for each use of its rows, and so has no guard.
 *   RULE(generations, name)                         a bool: true in these generations
 *   VALUE(type, name, tf_keras, experimental, keras3)
 * The comment of a row is its one meaning; "else" speaks of the other generations. */
/* clang-format off */

/* policy */
RULE(X, policy_has_loss_scale)
RULE(K3, policy_equal_by_name)
RULE(LX, policy_infer) /* "_infer" is a policy */
RULE(K3, policy_quantized) /* int8_from_... are policies */
RULE(K3, policy_maps) /* policies by layer */
/* any dtype name of the framework (complex64, string, ...) is accepted */
RULE(LX, policy_unknown_names_plain)
RULE(K3, policy_always_dict) /* serialized as an object even for plain float32 */
RULE(LK3, objects_have_module) /* saved objects have module and registered_name */
RULE(K3, policy_name_optional) /* without a name, the global policy's */
VALUE(const char *, policy_class, "Policy", "Policy", "DTypePolicy")
VALUE(const char *, policy_module, "keras.mixed_precision", "tensorflow.keras.mixed_precision.experimental",
      "keras")
RULE(LX, global_none_resets) /* set_global_policy(None) resets to floatx; else ValueError */
RULE(XK3, global_non_float_allowed)
RULE(K3, global_stored_at_first_read) /* a later change of floatx has no effect on it */
RULE(LX, global_refused_by_rewrite) /* a mixed policy is an error while the graph rewrite is enabled */
RULE(LX, device_check) /* constructing mixed_float16 logs the GPU check */
RULE(L, device_check_bfloat16) /* constructing mixed_bfloat16 uses up the check, silently */

/* layers */
RULE(K3, all_arguments_cast) /* else only the first argument */
RULE(K3, cast_before_input_spec)
/* a scope opens where the compute dtype differs from that of the outer scope or of the variables */
RULE(K3, autocast_scope_by_difference)
RULE(K3, autocast_non_float_refused) /* AutocastScope("int32") is a ValueError */
RULE(K3, assign_add_reads_cast_value) /* assign_add is assign(value + x) in the cast dtype */
/* every floating variable can cast itself; else only those of mixed policies */
RULE(K3, autocast_all_variables)
RULE(K3, frozen_weights_unregularized) /* weights that are not trained have no penalties */
/* `weights` of a layer that is no model lists all trainable weights of its nest, then all others */
RULE(LX, weights_trainable_first)
/* the second is "input_layer_1"; NULL: "input_1", "input_2", ... */
VALUE(const char *, input_layer_name, NULL, NULL, "input_layer")
/* of a functional model; the second is "model_1" */
VALUE(const char *, functional_name, "model", "model", "functional")
RULE(LX, private_name_prefix) /* "private" precedes names that start with an underscore */
RULE(LX, layer_norm_input_cast) /* K3: LayerNormalization and GroupNormalization do not cast inputs */
RULE(LX, batch_norm_unbiased_moving_variance) /* of the fused path */
/* moving -= (moving - batch) * (1 - momentum); K3: moving * momentum + batch * (1 - momentum) */
RULE(LX, batch_norm_update_subtracts)
RULE(K3, norm_output_clipped) /* moments are clipped to +-65504 before the downcast */
RULE(LX, normalization_weights_in_compute_dtype)
/* inputs of rank 4 and 5 follow the rules of the fused kernel, and fused=True may require them */
RULE(LX, batch_norm_fused)
RULE(LX, batch_norm_float32_weights) /* float32 if the policy's variables are 16-bit */
/* with trailing axes, epsilon of at least 1.001e-5 and float32 variables, gamma and beta are applied in
 * the input's dtype; otherwise 16-bit inputs are upcast if the variables are float32. K3: always upcast */
RULE(LX, layer_norm_fused)
RULE(K3, layer_norm_axes_sorted) /* else gamma and beta keep the axes in the order given */
RULE(K3, group_norm_widened) /* computed in float32; L: in the compute dtype */
RULE(LX, group_norm_weights_cast) /* weights are read as the compute dtype; K3: as they are */
RULE(K3, unit_norm_by_rsqrt) /* rsqrt(max(sum of squares, 1e-24)); cosine similarity uses 1e-14 */
RULE(K3, average_pooling_size_required) /* else 2 */
RULE(K3, interpolations_fewer) /* no area, gaussian, mitchellcubic */
RULE(K3, resizing_keeps_integers) /* of integer images; else they become floating */
RULE(K3, pooling_masks_by_select) /* masked steps are replaced by 0; else multiplied by 0 */
RULE(K3, random_flip_once) /* one draw for both directions */
/* factors of rotations and contrasts lie in [-1, 1] and [0, 1] and are saved as a pair (lower, upper);
 * else as given */
RULE(K3, random_factors_resolved)
RULE(K3, random_factors_sorted) /* else a pair that descends is a ValueError */
RULE(K3, random_contrast_for_each) /* a number for each image; else one for the batch */
RULE(K3, config_image_data_format) /* configs of layers for images have data_format and other options */
RULE(LX, category_encoding_checked) /* an id out of range is an error; K3: zeros */
RULE(K3, category_encoding_in_variable_dtype) /* else in the compute dtype */
RULE(K3, loss_in_floatx) /* else the loss is computed in the output's dtype */
RULE(K3, loss_names_all) /* has the losses of loss_kind.keras3_only */
RULE(LX, cross_entropy_epsilon_in_logs) /* binary cross-entropy adds epsilon inside the logarithms */
RULE(K3, mean_with_sample_weight) /* has this reduction, and "mean" */
/* of (batch) and (batch, 1), the first gains a dimension. Else the second loses one, and weights with
 * one more dimension than the values are a ValueError */
RULE(K3, loss_expands_vectors)
RULE(LX, categorical_focal_by_logits) /* uses remembered logits, as the other cross-entropies do */
RULE(K3, ignore_class_forgets_logits) /* with ignore_class, remembered logits are ignored */
RULE(LX, huber_in_floatx) /* huber computes in floatx, independent of the output's dtype */
RULE(LX, metrics_in_float64) /* under policy float64 the state is float64; K3: floatx */
VALUE(const char *, learning_rate_log, "lr", "lr", "learning_rate") /* its name in logs of callbacks */
/* a NumPy number, which a CSV shows as 0.001; K3: a float, 0.0010000000474974513 */
RULE(LX, learning_rate_log_numpy)
/* values are computed in y_pred's dtype, so that class ids above 2048 are inexact in float16; else in
 * the metric's dtype */
RULE(K3, metric_inputs_uncast)
RULE(LX, metric_functions_aligned) /* labels are cast and squeezed for functions of the user too */
RULE(K3, metric_values_by_sample) /* means count samples; else elements */
RULE(K3, metric_names_keras3) /* its own list and default names; else those of tf_keras */
RULE(LX, r2_count_integer) /* R2Score counts samples in int32; K3: in its own dtype */
/* "crossentropy" and "ce" name metrics, chosen by shape as "accuracy" is; K3: they name losses */
RULE(LX, metric_crossentropy_chosen)
/* with predictions of rank 2, compile passes labels (batch) as (batch, 1) to losses and metrics */
RULE(LX, compile_labels_gain_column)
/* labels broadcast against probabilities. Against logits neither generation broadcasts */
RULE(LX, binary_cross_entropy_broadcasts)
RULE(LX, metric_mask_is_weight) /* metrics of compile use the mask of the predictions as weights */
/* the confusion counts are true, false positives, true, false negatives; else both true counts come
 * first */
RULE(K3, metric_negatives_last)
RULE(K3, metric_ratio_epsilon) /* f-scores and IoU divide by x + epsilon; else x / 0 is 0 */
/* IoU counts in int64 and ignores class numbers out of range; else in floatx, and they are an error */
RULE(K3, metric_iou_integer)
RULE(K3, hard_sigmoid_relu6) /* relu6(x + 3) / 6; else clip(0.2 x + 0.5, 0, 1) */
RULE(K3, activation_names_all) /* the longer list */
RULE(LX, softmax_vector_refused) /* softmax of a rank-1 input is a ValueError */
RULE(LX, leaky_relu_alpha) /* the slope of LeakyReLU is named alpha in configs; K3: negative_slope */
/* configs of SpatialDropout and Discretization do not contain or accept `trainable` */
RULE(K3, config_without_trainable)
VALUE(double, l1_l2_default, 0.01, 0.01, 0) /* of the string "l1_l2" */

/* models as JSON (docs/spec/keras.md, 17) */
RULE(K3, node_objects) /* a call is {"args", "kwargs"}; else a list of [layer, node, tensor, keywords] */
RULE(LX, nested_calls_from_one) /* the calls of a nested model are numbered from 1 */
RULE(K3, model_ends_from_one) /* a model's ends count the calls of Functional ones from 1 */
RULE(LX, input_batch_input_shape) /* InputLayer and Embedding save batch_input_shape; K3: batch_shape */
RULE(LX, input_named_by_layer) /* "dense_input", before the layer "dense" of a sequential model */
/* configs have options that the library does not offer: renorm, quantization_config, ... */
RULE(K3, config_newer_options)
RULE(LX, config_activity_regularizer) /* configs of Dense have it, also if there is none */
RULE(LX, config_spatial_noise_shape) /* configs of SpatialDropout have noise_shape */
/* configs of transposed, depthwise and separable convolutions have the inherited `groups`, and that of
 * Conv3DTranspose has no dilation_rate */
RULE(LX, config_conv_inherited)
RULE(LX, depthwise_kernel_named) /* a DepthwiseConv's weight is "depthwise_kernel"; K3: "kernel" */
RULE(LX, config_axes_resolved) /* a built normalization saves a list of its axes counted from 0 */
RULE(K3, config_axes_listed) /* normalizations over several axes save a list in any case */
RULE(LX, json_has_version) /* to_json has class_name, config, keras_version and backend; K3: an object */
/* files are those of this generation; NULL: of the own one */
VALUE(const mix_semantics *, saved_as, NULL, &mix_semantics_tf_keras, NULL)
VALUE(const char *, keras_version, "2.21.0", "2.4.0", "3.15.1") /* of files and of to_json */
RULE(K3, saved_objects_named) /* groups of weights have the name of their object as an attribute */
RULE(K3, h5_optimizer_unbuilt) /* that of an .h5 has no variables, and trains after a compile alone */
RULE(LX, saved_names_numbered) /* names of weights in HDF5 files end in ":0" */
VALUE(const char *, optimizer_package, "Custom", NULL, NULL) /* of .h5 files' classes: "Custom>SGD" */
RULE(K3, bfloat16_saved) /* as bfloat16 in .weights.h5; else weights are saved as float32 */
VALUE(const char *, functional_module, "tf_keras.src.engine.functional",
      "tensorflow.python.keras.engine.functional", "keras.src.models.functional")
/* of classes that have no public module */
VALUE(const char *, source_package, "tf_keras.src", "tensorflow.python.keras", "keras.src")
RULE(K3, sequential_saves_policy) /* with trainable, dtype and build_input_shape */
RULE(K3, build_shapes_named) /* the build_config of a layer of several tensors names their shapes */
RULE(L, functional_saves_shape) /* the shape in its build_config; K3: null */
RULE(K3, built_from_start_unsaved) /* layers that are built when they are made have no build_config */
RULE(K3, compile_config_always) /* {} before compile */
RULE(LX, compile_metrics_before_weights) /* the order of the entries of a compile config */
RULE(L, saved_names_skip_seen) /* paths of weights do not count layers that stand at an earlier path */
RULE(K3, weights_sharded) /* weights may be saved in several files and an index */
RULE(LK3, optimizer_in_weights_file) /* X: only .h5 has the state of an optimizer */
RULE(K3, learning_rate_saved) /* the saved state of an optimizer has its learning rate */
RULE(XK3, nadam_product_saved)
RULE(K3, summary_boxes) /* rich's table, and the optimizer's state counts */
RULE(K3, compile_defaults_saved) /* run_eagerly and jit_compile false, steps_per_execution 1; else null */

/* compile and fit (docs/spec/keras.md, 11 and 13 to 15) */
RULE(K3, history_keys_sorted) /* the keys of logs and of a history are sorted */
RULE(LX, output_names_unique) /* outputs of one layer are named "lstm", "lstm_1"; K3: alike */
RULE(K3, metric_names_numbered) /* a second metric of one name gets "_1"; else ValueError */
RULE(K3, metric_named_as_requested) /* logged under the text of the request; else under the object's name */
RULE(K3, weighted_metrics_last) /* behind those of all outputs; else behind their own output's */
RULE(K3, single_loss_as_total) /* if one of several outputs has a loss, only the total is shown */
RULE(LX, class_weights_complete) /* keys must be 0 to n - 1, labels below n; K3: 1 where missing */
RULE(LX, output_dicts_partial) /* a dict of labels or weights may lack outputs; K3: ValueError */
RULE(LX, unused_inputs_warned) /* a dict of inputs with a name that is no input logs a warning */
RULE(K3, layer_names_keras3) /* has the layers of layer_kind.keras3_only; else those of tf_keras_only */
RULE(K3, class_weights_alone) /* with sample weights ValueError; else the two are multiplied */
RULE(K3, arrays_repeat) /* with steps_per_epoch, arrays repeat as often as needed; else once an epoch */
/* with steps_per_epoch, an epoch that begins at the end of the data starts over */
RULE(K3, epoch_restarts_data)
RULE(K3, epoch_ends_with_data) /* data that run out end the epoch; else the training */
RULE(K3, monitor_by_metric) /* mode auto takes the direction of the metric; else that of the name */
/* a callback's first value is an improvement; else only if it is better than infinity */
RULE(K3, monitor_first_improves)
/* ReduceLROnPlateau adds |min_delta| to the value; else min_delta, of either sign, to the best */
RULE(K3, plateau_delta_on_value)
RULE(K3, checkpoint_saves_unmonitored) /* ModelCheckpoint saves if the monitored value is missing */
RULE(K3, progress_dashes) /* the progress output of 15.1; else of 15.2 */
RULE(LX, progbar_arguments) /* ProgbarLogger has count_mode and stateful_metrics; K3: no arguments */
RULE(LX, progress_averages) /* numbers that are not the model's are averaged over the steps */

/* merging layers keep what any mask keeps, and everything if an input has no mask; Multiply, Maximum
 * and Minimum ignore masked elements. Else: what all masks keep */
RULE(K3, merge_keeps_any)
RULE(K3, preprocessing_passes_masks) /* Rescaling and Normalization do */

/* recurrent layers (docs/spec/keras.md, 4) */
RULE(K3, rnn_casts_initial_state) /* given states are cast to the cell's compute dtype */
RULE(LX, rnn_states_in_inputs) /* given states follow the input in one list; K3: an argument */
RULE(LX, rnn_time_major) /* has time_major, and saves it and `implementation` */
RULE(LX, bidirectional_keeps_layer) /* saves the given layer; K3: its forward copy */
RULE(K3, time_distributed_by_step) /* calls its layer on each step; else once on a batch of all steps */
RULE(K3, rnn_seed_saved) /* configs of LSTM, GRU and cells have the seed */
RULE(LX, conv_lstm_hard_sigmoid) /* the default of ConvLSTM's recurrent_activation; K3: sigmoid */
RULE(K3, conv_lstm_sizes_known) /* a spatial size that is not known is a ValueError */
RULE(LX, einsum_activity_dropped) /* EinsumDense drops its activity regularizer */
RULE(K3, einsum_fans_by_axes) /* fans of EinsumDense's kernel are products of its summed and other axes */
/* scores and softmax of multi-head attention are in float32 where no scores are asked for and there is
 * no dropout; else in the compute dtype */
RULE(K3, attention_scores_float32)
/* masked scores of Attention become x - constant by a where; else by adding -constant * (1 - mask) */
RULE(K3, attention_mask_where)
RULE(K3, attention_newer_options) /* attention layers have seed, use_gate and sliding_window */
RULE(LX, attention_shapes_saved) /* configs of MultiHeadAttention have the shapes that it was built for */
/* negative attention axes count from the last axis of the inputs; else of the projections */
RULE(K3, attention_axes_of_inputs)
/* an activity regularizer of multi-head attention is not of its own results, only of its projections */
RULE(K3, attention_activity_inner)
/* of layers with several named tensors, the mask that the first carries goes on to the result, not a
 * given one, which multi-head attention ignores altogether */
RULE(K3, attention_masks_carried)
RULE(K3, additive_attention_scales_query) /* its scale has the query's dimension; else the value's */
RULE(K3, attention_properties_saved) /* files name the projections of MultiHeadAttention without '_' */

/* replaces masked float16 values, or is added to them; L: half of float16.min, which is X's */
VALUE(double, softmax_mask_float16, -32752, -65504, -3e4)
RULE(K3, softmax_mask_where) /* where(mask, x, constant), then zeros; else x + constant */

/* loss scaling */
RULE(L, iteration_on_skip) /* a skipped step counts as an iteration */
VALUE(double, scale_floor, 1, 1, 0) /* 0: no floor */
/* growth to a scale that is not finite is not applied; K3: the scale becomes infinite */
RULE(LX, scale_capped)
RULE(K3, growth_at_equality) /* grows when good_steps == period - 1; else when good_steps + 1 >= period */
RULE(K3, finite_test_scaled) /* the test reads scaled gradients, and apply accepts them */
RULE(LK3, loss_scale_multiplier_two) /* any other multiplier is a ValueError when a wrapper gets it */
RULE(K3, scaled_loss_widened) /* a 16-bit loss times the scale is float32; else 16-bit */
/* the wrapper takes a loss scale object, and its config is {optimizer, loss_scale}; else numbers */
RULE(X, wrapper_takes_object)
RULE(LX, wrapper_reads_object_form) /* a config {optimizer, loss_scale} is read */
/* of an inner object that is no optimizer */
VALUE(mix_status, wrapper_inner_error, MIX_TYPE_ERROR, MIX_VALUE_ERROR, MIX_TYPE_ERROR)
/* of wrapping a wrapper */
VALUE(mix_status, wrapper_nested_error, MIX_TYPE_ERROR, MIX_VALUE_ERROR, MIX_OK)
RULE(L, wrapper_twice_refused) /* wrapping an optimizer twice is a ValueError */
RULE(X, wrapper_clip_refused) /* an inner optimizer with clip arguments is a ValueError */
RULE(L, wrapper_warns_unused) /* warns if neither scaling nor unscaling was called */
RULE(K3, wrapper_fixed_refused) /* dynamic=False is a ValueError that names loss_scale_factor */
RULE(L, wrapper_dynamic_argument) /* `dynamic` is an argument, and in the config */
RULE(K3, wrapper_named) /* `name` is an argument, and in the config */
RULE(K3, wrapper_keywords_checked) /* keywords of the inner optimizer must have their defaults */
RULE(LX, wrapper_unscaled_loop) /* get_scaled_loss and get_unscaled_gradients exist */
RULE(K3, wrapper_state_in_variables) /* its own variables precede those of the inner optimizer */
RULE(L, wrapper_class_by_family) /* LossScaleOptimizerV3 around an optimizer that is not legacy */
RULE(L, wrapper_h5_state_lost) /* that class never says that it is built, and begins anew after an .h5 */
/* in configs */
VALUE(const char *, wrapper_module, "tf_keras.src.mixed_precision.loss_scale_optimizer", NULL,
      "keras.optimizers")
RULE(L, wrapper_registered) /* its class has a registered name, which is the same */
RULE(K3, optimizer_loss_scale_factor) /* every optimizer has loss_scale_factor */
VALUE(mix_auto_wrap, auto_wrap, MIX_AUTO_WRAP_MIXED_FLOAT16, MIX_AUTO_WRAP_POLICY_LOSS_SCALE,
      MIX_AUTO_WRAP_MIXED_FLOAT16)
RULE(K3, auto_wrap_optional) /* compile(auto_scale_loss=); else TypeError */

/* optimizers (docs/spec/keras.md, 12) */
RULE(X, rmsprop_epsilon_outside) /* OptimizerV2 without momentum: lr g / (sqrt(v) + epsilon) */
RULE(L, rmsprop_rate_with_root) /* g (lr / sqrt(v + epsilon)); else (lr g) / sqrt(v + epsilon) */
RULE(X, adagrad_epsilon_outside)
RULE(X, ftrl_zero_within_l1) /* |z| <= l1 and a NaN in z give 0, whatever the divisor is */
RULE(X, adamax_bias_outside) /* lr / (1 - beta_1^t) * m / (u + epsilon) */
VALUE(double, nadam_schedule_decay, 1, 0.004, 1) /* factor of the exponent of 0.96 */
VALUE(double, lion_learning_rate, 1e-4, 1e-4, 1e-3)
VALUE(mix_clip_rule, clip_rule, MIX_CLIP_FIRST, MIX_CLIP_ALL, MIX_CLIP_ONE)
RULE(K3, integer_learning_rate_refused)
RULE(X, learning_rate_decay) /* decay=, lr / (1 + decay * iterations) */
RULE(X, nadam_schedule_refused) /* Nadam takes no learning rate schedule */
RULE(LK3, averages_and_weight_decay) /* every optimizer has use_ema and weight_decay */
RULE(X, clip_omitted_if_none) /* configs lack clip arguments that are not set; else null */
VALUE(int64_t, ema_overwrite_frequency_rmsprop, 100, 0, 0)
RULE(L, adam_adaptive_epsilon) /* has it (default off) */
/* an optimizer first sums the rows of a sparse gradient that have the same index. K3: it squares each
 * of them, and sums the squares */
RULE(LX, sparse_repeats_summed)
/* momenta and running means of most optimizers stay where a sparse gradient has no row */
RULE(X, sparse_idle_rows_kept)
RULE(X, sparse_constraint_refused) /* a constraint on a variable with a sparse gradient: RuntimeError */
RULE(X, iteration_variable_named_iter) /* "iter"; else "iteration" */
RULE(K3, gradient_accumulation) /* gradient_accumulation_steps= */
/* of a config's unknown keyword */
VALUE(mix_status, unknown_keyword_error, MIX_TYPE_ERROR, MIX_TYPE_ERROR, MIX_VALUE_ERROR)
RULE(K3, decay_keyword_ignored) /* `decay` in a config is a warning; L: ValueError */
/* index of an optimizer's names for a slot: ("rms", "m"), ("velocity", "m"), ("velocity", "momentum") */
VALUE(int, slot_names, 1, 0, 2)
VALUE(mix_state_path, state_path, MIX_STATE_SLOT_WEIGHT, MIX_STATE_OPTIMIZER_WEIGHT_SLOT, MIX_STATE_FLAT)
RULE(K3, optimizer_name_lower_case) /* the default name is "sgd"; else "SGD" */
/* averages start as copies of the weights; K3: at zero, and the first step takes the weight itself */
RULE(L, ema_starts_at_weight)
RULE(K3, gradients_cast) /* a gradient of another dtype than its variable is cast; else TypeError */
/* slots are created slot by slot (except those of Ftrl); else variable by variable */
RULE(X, slots_slot_by_slot)
/* an optimizer in a loss-scale optimizer does not track, nor save, what is no slot of a variable */
RULE(K3, wrapped_state_untracked)
RULE(K3, missing_slots_counted) /* a slot of Adafactor that a vector lacks is an integer 0 in the state */
RULE(L, config_says_not_legacy) /* configs contain jit_compile and is_legacy_optimizer */
RULE(LK3, config_legacy_keys_ignored) /* those two keys have no effect; X: they are unknown */
/* Nadam's product uses beta_1 and 0.96 unrounded; else they are cast through float32 */
RULE(K3, nadam_product_uncast)
RULE(K3, schedules_named) /* an unnamed learning rate schedule takes the name of its class */
/* betas, rho and momentum are float32 variables, from which 1 - beta is computed */
RULE(X, hyperparameters_in_variables)
/* in a tf.function, Nadam's product advances with each variable except one (adamax.c); else once a step */
RULE(L, nadam_product_per_variable)
RULE(L, sgd_slot_always) /* SGD has a slot even without momentum */

#undef RULE
#undef VALUE
