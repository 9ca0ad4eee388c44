// Options structs from C++, without the macros of C. The program fills some, links with the shared library
// and runs.
#include <mixtape/mixtape.h>

#include <cstddef>
#include <cstdio>

namespace {

// A dense layer of ones under mixed_float16: (1, 3) of ones -> (1, 2) of threes, in float16.
bool calls_a_layer() {
  if (mix_set_global_policy("mixed_float16") != MIX_OK) return false;
  mix_dense_options options = mix_dense_defaults();
  options.units = 2;
  options.kernel_initializer = "ones";
  mix_layer *layer = mix_dense_with(&options);

  const double ones[] = {1, 1, 1};
  mix_shape shape = {};
  shape.rank = 2;
  shape.dims[0] = 1;
  shape.dims[1] = 3;
  mix_call_options call = {};
  call.size = sizeof call;
  call.inputs = mix_tensor_from_doubles(ones, MIX_FLOAT32, shape);
  mix_tensor *outputs = mix_call_with(layer, &call);
  double read[2] = {0, 0};
  return mix_tensor_dtype(outputs) == MIX_FLOAT16 &&
         mix_tensor_read(outputs, MIX_FLOAT64, read, 2) == MIX_OK && read[0] == 3 && read[1] == 3;
}

// One step of gradient descent: 2 - 0.5 * 1.
bool takes_a_step() {
  mix_variable_options options = {};
  options.size = sizeof options;
  options.initial_value = mix_scalar(2.0, MIX_FLOAT32);
  options.name = "weight";
  mix_variable *weight = mix_variable_with(&options);

  mix_sgd_options rule = mix_sgd_defaults();
  rule.learning_rate = 0.5;
  mix_optimizer *optimizer = mix_sgd_with(&rule);
  void *gradients[] = {mix_scalar(1.0, MIX_FLOAT32)};
  void *variables[] = {weight};
  mix_optimizer_apply_gradients(optimizer, mix_list_new(1, gradients), mix_list_new(1, variables));
  return mix_tensor_item(mix_variable_value(weight)) == 1.5;
}

// Every defaults function sets the size of its own struct and leaves the rest zero.
template <class Options> bool has_its_size(const Options &options) {
  const unsigned char *bytes = reinterpret_cast<const unsigned char *>(&options);
  for (std::size_t i = sizeof options.size; i < sizeof options; i++)
    if (bytes[i]) return false;
  return options.size == sizeof options;
}
bool defaults_have_their_sizes() {
  bool right = true;
  right = right && has_its_size(mix_input_defaults());
  right = right && has_its_size(mix_dense_defaults());
  right = right && has_its_size(mix_activation_defaults());
  right = right && has_its_size(mix_flatten_defaults());
  right = right && has_its_size(mix_dropout_defaults());
  right = right && has_its_size(mix_softmax_layer_defaults());
  right = right && has_its_size(mix_relu_layer_defaults());
  right = right && has_its_size(mix_leaky_relu_layer_defaults());
  right = right && has_its_size(mix_prelu_defaults());
  right = right && has_its_size(mix_elu_layer_defaults());
  right = right && has_its_size(mix_thresholded_relu_defaults());
  right = right && has_its_size(mix_locally_connected_defaults());
  right = right && has_its_size(mix_reshape_layer_defaults());
  right = right && has_its_size(mix_permute_defaults());
  right = right && has_its_size(mix_repeat_vector_defaults());
  right = right && has_its_size(mix_masking_defaults());
  right = right && has_its_size(mix_merge_defaults());
  right = right && has_its_size(mix_concatenate_defaults());
  right = right && has_its_size(mix_dot_defaults());
  right = right && has_its_size(mix_rescaling_defaults());
  right = right && has_its_size(mix_normalization_defaults());
  right = right && has_its_size(mix_discretization_defaults());
  right = right && has_its_size(mix_category_encoding_defaults());
  right = right && has_its_size(mix_embedding_defaults());
  right = right && has_its_size(mix_batch_normalization_defaults());
  right = right && has_its_size(mix_layer_normalization_defaults());
  right = right && has_its_size(mix_group_normalization_defaults());
  right = right && has_its_size(mix_rms_normalization_defaults());
  right = right && has_its_size(mix_unit_normalization_defaults());
  right = right && has_its_size(mix_spatial_dropout_defaults());
  right = right && has_its_size(mix_gaussian_noise_defaults());
  right = right && has_its_size(mix_gaussian_dropout_defaults());
  right = right && has_its_size(mix_alpha_dropout_defaults());
  right = right && has_its_size(mix_activity_regularization_defaults());
  right = right && has_its_size(mix_lambda_defaults());
  right = right && has_its_size(mix_conv_defaults());
  right = right && has_its_size(mix_conv_layer_defaults());
  right = right && has_its_size(mix_conv_transpose_layer_defaults());
  right = right && has_its_size(mix_depthwise_conv_layer_defaults());
  right = right && has_its_size(mix_separable_conv_layer_defaults());
  right = right && has_its_size(mix_cell_defaults());
  right = right && has_its_size(mix_stacked_rnn_cells_defaults());
  right = right && has_its_size(mix_rnn_defaults());
  right = right && has_its_size(mix_recurrent_defaults());
  right = right && has_its_size(mix_conv_lstm_defaults());
  right = right && has_its_size(mix_bidirectional_defaults());
  right = right && has_its_size(mix_time_distributed_defaults());
  right = right && has_its_size(mix_einsum_dense_defaults());
  right = right && has_its_size(mix_multi_head_attention_defaults());
  right = right && has_its_size(mix_grouped_query_attention_defaults());
  right = right && has_its_size(mix_attention_defaults());
  right = right && has_its_size(mix_additive_attention_defaults());
  right = right && has_its_size(mix_sgd_defaults());
  right = right && has_its_size(mix_rmsprop_defaults());
  right = right && has_its_size(mix_adam_defaults());
  right = right && has_its_size(mix_adagrad_defaults());
  right = right && has_its_size(mix_adadelta_defaults());
  right = right && has_its_size(mix_adamax_defaults());
  right = right && has_its_size(mix_lion_defaults());
  right = right && has_its_size(mix_ftrl_defaults());
  right = right && has_its_size(mix_lamb_defaults());
  right = right && has_its_size(mix_adafactor_defaults());
  right = right && has_its_size(mix_muon_defaults());
  right = right && has_its_size(mix_schedule_free_adamw_defaults());
  right = right && has_its_size(mix_graph_rewrite_defaults());
  return right;
}

/* MIX_SCOPE is no loop in C++, and no scope hides another. */
bool scopes_leave_loops_alone() {
  int ends = 0;
  MIX_SCOPE_HERE;
  for (int i = 0; i < 10; i++) {
    MIX_SCOPE {
      if (i == 1) continue;
      if (i == 3) break;
    }
    MIX_SCOPE_HERE;
    ends++;
  }
  bool otherwise = false;
  if (ends == 0) {
    MIX_SCOPE {}
  } else
    otherwise = true;
  if (ends == 2)
    MIX_SCOPE { ends++; }
  else
    otherwise = false;
  return ends == 3 && otherwise;
}

} // namespace

int main() {
  mix_scope *scope = mix_scope_begin();
  const bool right = scopes_leave_loops_alone() && takes_a_step() && calls_a_layer() &&
                     defaults_have_their_sizes() && mix_error() == MIX_OK;
  if (!right) std::fprintf(stderr, "a layer or a step is wrong (%s)\n", mix_error_message());
  mix_scope_end(scope);
  mix_shutdown();
  return right ? 0 : 1;
}
