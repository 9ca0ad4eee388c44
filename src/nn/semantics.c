/* The three generations (spec/mixed-precision.md, section 10; spec/layers.md, 8 to 12). */
#include "nn/semantics.h"
#include "base/error.h"
#include <stdatomic.h>
#include <string.h>

const mix_semantics mix_semantics_tf_keras = {
    .name = "tf_keras",
    .policy_infer = true,
    .policy_unknown_names_plain = true,
    .policy_module_in_dict = true,
    .policy_class = "Policy",
    .policy_module = "keras.mixed_precision",
    .global_none_resets = true,
    .global_refused_by_rewrite = true,
    .device_check = true,
    .device_check_bfloat16 = true,
    .activity_loss_by_batch = true,
    .weights_trainable_first = true,
    .private_name_prefix = true,
    .layer_norm_input_cast = true,
    .batch_norm_unbiased_moving_variance = true,
    .batch_norm_update_subtracts = true,
    .batch_norm_fused = true,
    .batch_norm_float32_weights = true,
    .layer_norm_fused = true,
    .category_encoding_checked = true,
    .normalization_weights_in_compute_dtype = true,
    .cross_entropy_epsilon_in_logs = true,
    .huber_in_floatx = true,
    .metric_mask_is_weight = true,
    .softmax_vector_refused = true,
    .l1_l2_default = 0.01,
    .softmax_mask_float16 = -32752,
    .softmax_mask = -1e9,
    .attention_mask_float16 = 65504,
    .attention_mask = 1e9,
    .attention_op_mask_float16 = -65504,
    .attention_op_mask = -1e9,
    .iteration_on_skip = true,
    .scale_floor = 1,
    .scale_capped = true,
    .loss_scale_multiplier_two = true,
    .wrapper_warns_unused = true,
    .wrapper_nested_refused = true,
    .wrapper_dynamic_argument = true,
    .auto_wrap = MIX_AUTO_WRAP_MIXED_FLOAT16,
    .nadam_schedule_decay = 1,
    .lion_learning_rate = 1e-4,
    .clip_rule = MIX_CLIP_FIRST,
    .ema_overwrite_frequency_rmsprop = 100,
    .adam_adaptive_epsilon = true,
    .sparse_updates = true,
    .unknown_keyword_refused = true,
    .slot_names = 1,
    .ema_starts_at_weight = true,
    .sgd_slot_always = true,
    .nadam_product_per_variable = true,
    .config_says_not_legacy = true,
};

const mix_semantics mix_semantics_keras3 = {
    .name = "keras3",
    .policy_equal_by_name = true,
    .policy_quantized = true,
    .policy_always_dict = true,
    .policy_module_in_dict = true,
    .policy_class = "DTypePolicy",
    .policy_module = "keras",
    .global_non_float_allowed = true,
    .global_stored_at_first_read = true,
    .all_arguments_cast = true,
    .cast_before_input_spec = true,
    .autocast_scope_by_difference = true,
    .autocast_non_float_refused = true,
    .assign_add_reads_cast_value = true,
    .autocast_all_variables = true,
    .input_layer_name = "input_layer",
    .norm_output_clipped = true,
    .group_norm_widened = true,
    .unit_norm_by_rsqrt = true,
    .loss_in_floatx = true,
    .mean_with_sample_weight = true,
    .metric_inputs_uncast = true,
    .metric_values_by_sample = true,
    .metric_negatives_last = true,
    .metric_ratio_epsilon = true,
    .metric_iou_integer = true,
    .hard_sigmoid_relu6 = true,
    .activation_names_all = true,
    .history_keys_sorted = true,
    .rnn_casts_initial_state = true,
    .softmax_mask_float16 = -3e4,
    .softmax_mask = -1e9,
    .softmax_mask_where = true,
    .attention_mask_float16 = 65504,
    .attention_mask = 1e9,
    .attention_op_mask_float16 = -0.7 * 65500,
    .attention_op_mask = -0.7 * 3.38953e38,
    .growth_at_equality = true,
    .finite_test_scaled = true,
    .loss_scale_multiplier_two = true,
    .wrapper_state_in_variables = true,
    .optimizer_loss_scale_factor = true,
    .auto_wrap = MIX_AUTO_WRAP_MIXED_FLOAT16,
    .auto_wrap_optional = true,
    .nadam_schedule_decay = 1,
    .lion_learning_rate = 1e-3,
    .clip_rule = MIX_CLIP_ONE,
    .integer_learning_rate_refused = true,
    .gradient_accumulation = true,
    .unknown_keyword_refused = true,
    .slot_names = 2,
    .optimizer_name_lower_case = true,
    .schedules_named = true,
    .nadam_product_uncast = true,
    .gradients_cast = true,
};

const mix_semantics mix_semantics_experimental = {
    .name = "experimental",
    .policy_has_loss_scale = true,
    .policy_infer = true,
    .policy_unknown_names_plain = true,
    .policy_class = "Policy",
    .policy_module = "tensorflow.keras.mixed_precision.experimental",
    .global_none_resets = true,
    .global_non_float_allowed = true,
    .global_refused_by_rewrite = true,
    .device_check = true,
    .activity_loss_by_batch = true,
    .weights_trainable_first = true,
    .private_name_prefix = true,
    .layer_norm_input_cast = true,
    .batch_norm_unbiased_moving_variance = true,
    .batch_norm_update_subtracts = true,
    .batch_norm_fused = true,
    .batch_norm_float32_weights = true,
    .layer_norm_fused = true,
    .category_encoding_checked = true,
    .normalization_weights_in_compute_dtype = true,
    .cross_entropy_epsilon_in_logs = true,
    .huber_in_floatx = true,
    .metric_mask_is_weight = true,
    .softmax_vector_refused = true,
    .l1_l2_default = 0.01,
    .softmax_mask_float16 = -65504, /* float16.min; later releases halved it */
    .softmax_mask = -1e9,
    .attention_mask_float16 = 65504,
    .attention_mask = 1e9,
    .attention_op_mask_float16 = -65504,
    .attention_op_mask = -1e9,
    .scale_floor = 1,
    .scale_capped = true,
    .wrapper_clip_refused = true,
    .auto_wrap = MIX_AUTO_WRAP_POLICY_LOSS_SCALE,
    .rmsprop_epsilon_outside = true,
    .adagrad_epsilon_outside = true,
    .adamax_bias_outside = true,
    .nadam_schedule_decay = 0.004,
    .lion_learning_rate = 1e-4,
    .clip_rule = MIX_CLIP_ALL,
    .learning_rate_decay = true,
    .sparse_updates = true,
    .iteration_variable_named_iter = true,
    .hyperparameters_in_variables = true,
    .slots_slot_by_slot = true,
    .unknown_keyword_refused = true,
};

static const mix_semantics *const tables[] = {&mix_semantics_tf_keras, &mix_semantics_keras3, &mix_semantics_experimental};

static _Atomic(const mix_semantics *) current = &mix_semantics_tf_keras;

const mix_semantics *mix_semantics_named(const char *name) {
  if (mix_failed()) return NULL;
  for (size_t i = 0; name && i < sizeof tables / sizeof *tables; i++)
    if (!strcmp(tables[i]->name, name)) return tables[i];
  return mix_fail(MIX_VALUE_ERROR, "semantics: \"%s\" is not known; expected \"tf_keras\", \"keras3\" or \"experimental\"",
                  name ? name : "NULL");
}

mix_status mix_set_semantics(const char *name) {
  if (mix_failed()) return mix_error();
  const mix_semantics *semantics = mix_semantics_named(name);
  if (!semantics) return mix_error();
  atomic_store(&current, semantics);
  return MIX_OK;
}

const mix_semantics *mix_semantics_current(void) { return atomic_load(&current); }

const char *mix_semantics_name(const mix_semantics *semantics) { return semantics ? semantics->name : ""; }
