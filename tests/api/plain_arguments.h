/* Plain arguments of the public functions for the calls that misuse.py writes. Not every program of these
 * tests uses all. */
#ifndef MIX_TESTS_API_PLAIN_ARGUMENTS_H
#define MIX_TESTS_API_PLAIN_ARGUMENTS_H

#include <limits.h>
#include <math.h>
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((unused)) static char text_buffer[4096], long_text[6000];
static double memory[8192];
static const char *const name_array[16] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                           "i", "j", "k", "l", "m", "n", "o", "p"};

#define SHAPE(rank, size) ((mix_shape){rank, {size, size, size, size, size, size, size, size}})
#define AXES(count, index) ((mix_axes){count, {index, index, index, index, index, index, index, index}})

static inline mix_tensor *a_tensor(void) {
  return mix_tensor_from_doubles((const double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, MIX_FLOAT32, MIX_SHAPE(3, 3));
}
static inline mix_tensor *a_scalar(void) { return mix_scalar(1, MIX_FLOAT32); }
static inline mix_tensor *true_scalar(void) { return mix_scalar(1, MIX_BOOL); }
static inline mix_tensor *a_row(void) {
  return mix_tensor_from_doubles((const double[]){1, 2, 3}, MIX_FLOAT32, MIX_SHAPE(3));
}
static inline mix_tensor *a_bool(void) { return mix_cast(a_tensor(), MIX_BOOL); }
static inline mix_tensor *an_index(void) {
  return mix_tensor_from((const int64_t[]){0, 2, 1}, MIX_INT64, MIX_SHAPE(3));
}
static inline mix_tensor *a_state(void) {
  return mix_tensor_from((const int64_t[]){7, 0}, MIX_INT64, MIX_SHAPE(2));
}
static inline mix_list *a_list(void) { return mix_list_of(a_tensor()); }
static inline mix_list *a_list_of(void *item) { return mix_list_of(item); }
static inline mix_variable *a_variable(void) { return mix_variable_new(a_tensor(), .name = "v"); }
static inline mix_list *a_list_of_variables(void) { return mix_list_of(a_variable()); }
static inline mix_tape *a_tape(void) { return mix_tape_begin(); }
static inline mix_list *body(void *context, mix_list *arguments) {
  (void)context;
  return arguments;
}
static inline mix_list *backward(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  (void)context, (void)inputs, (void)outputs;
  return gradients;
}
static inline mix_function *a_function(void) { return mix_function_new(body, NULL); }
static inline mix_generator *a_generator(void) { return mix_generator_new(1); }
static inline mix_policy *a_map(void) {
  mix_policy *map = mix_policy_map_new(.semantics = mix_semantics_named("keras3"));
  mix_policy_map_set_name(map, "dense", "mixed_float16");
  return map;
}
static inline mix_policy *a_policy(void) { return mix_policy_new("mixed_float16"); }
static inline mix_layer *a_layer(void) { return mix_dense(2); }
static inline mix_initializer *an_initializer(void) { return mix_initializer_new("zeros"); }
static inline mix_regularizer *a_regularizer(void) { return mix_regularizer_new("l2"); }
static inline mix_constraint *a_constraint(void) { return mix_constraint_new("non_neg"); }
static inline mix_loss *a_loss(void) { return mix_loss_new("mse"); }
static inline mix_metric *a_metric(void) { return mix_metric_new("mean"); }
static inline mix_optimizer *an_optimizer(void) { return mix_sgd(.learning_rate = 0.1); }
static inline mix_optimizer *a_scaling_optimizer(void) { return mix_loss_scale_optimizer(an_optimizer()); }
static inline mix_loss_scale *a_loss_scale(void) { return mix_dynamic_loss_scale(); }
static inline mix_list *generate(void *context, int64_t index) {
  return context && index < 3 ? a_list() : NULL;
}
static inline bool keep(void *context, mix_list *element) { return context && element; }
static inline mix_tensor *loss_of(void *context) { return context ? a_scalar() : NULL; }
static inline mix_tensor *step_of(void *context, mix_tensor *step) {
  (void)context;
  return step;
}
static inline double rate_of(void *context, int64_t epoch, double rate) {
  return context && epoch ? rate : 1;
}
static inline mix_dataset *a_dataset(void) {
  return mix_dataset_from_list(mix_list_of(a_tensor(), a_tensor()));
}
static inline mix_dataset *expand(void *context, mix_list *element) {
  (void)context;
  return mix_dataset_from_element(element);
}
static inline mix_iterator *an_iterator(void) { return mix_dataset_iterate(a_dataset()); }
static inline mix_model *a_model(void) {
  mix_model *model = mix_sequential(mix_list_of(mix_dense(3, .name = "inner")));
  mix_model_build(model, MIX_SHAPE(3, 3));
  mix_model_compile(model, .optimizer_name = "sgd", .loss = "mse");
  return model;
}
static inline mix_model *a_token_model(void) {
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(8), .dtype = "int32");
  return mix_model_new(tokens, mix_call(mix_embedding(4, 4, .name = "words"), tokens));
}
static inline mix_decode_state *a_decode_state(void) {
  return mix_decode_state_new(a_token_model(), .batch = 3);
}
static inline mix_tensor *a_token(void) { return mix_expand_dims(an_index(), 1); }
static inline mix_layer *a_built_layer(void) {
  mix_layer *layer = a_layer();
  mix_layer_build(layer, MIX_SHAPE(3, 3));
  return layer;
}
static inline mix_model *a_lora_model(void) {
  mix_model *model = a_model();
  mix_model_enable_lora(model, 2);
  return model;
}
static inline const char *an_adapter(void) {
  mix_model_save_lora(a_lora_model(), "adapter.npz");
  return "adapter.npz";
}
static inline mix_history *a_history(void) {
  return mix_model_fit(a_model(), a_tensor(), a_tensor(), .verbose = MIX_SILENT);
}
static inline mix_npz *an_npz(void) {
  mix_tensor *tensor = a_tensor();
  mix_npz_save("archive.npz", 1, name_array, &tensor);
  return mix_npz_open("archive.npz");
}
static inline const char *a_table(void) {
  FILE *file = fopen("table.csv", "w");
  if (file) fputs("n,w\n1,a\n2,b\n", file);
  if (file) fclose(file);
  return "table.csv";
}
static inline mix_csv_columns *a_csv_columns(void) { return mix_csv_load(a_table()).columns; }
static inline const char *a_columns_file(void) {
  mix_csv_columns_save(a_csv_columns(), "columns.json");
  return "columns.json";
}
static inline mix_callback *a_callback(void) { return mix_terminate_on_nan(); }
static inline mix_checkpoint *a_checkpoint(void) {
  static int number; /* a folder of its own, as checkpoints of another run are not overwritten */
  char folder[40];
  snprintf(folder, sizeof folder, "checkpoints-%d-%d", (int)getpid(), ++number);
  return mix_checkpoint_new(folder, .model = a_model());
}
static inline mix_logs *a_logs(void) { return mix_logs_of(2, name_array, memory); }
static inline mix_numerics *a_numerics(void) { return mix_numerics_new(); }
static inline mix_schedule *a_schedule(void) { return mix_exponential_decay(1, 2, 0.5, false); }
static inline mix_tensor *const *tensor_array(void) {
  static mix_tensor *tensors[16];
  for (int i = 0; i < 16; i++) tensors[i] = a_tensor();
  return tensors;
}
static inline void *const *object_array(void) { return (void *const *)tensor_array(); }

#endif
