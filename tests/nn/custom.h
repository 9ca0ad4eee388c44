/* Custom layers as in the guides: SimpleDense, AddRandom, the two-input MyLayer, and small probes. */
#ifndef MIX_TESTS_NN_CUSTOM_H
#define MIX_TESTS_NN_CUSTOM_H

#include "nn/support.h"

/* ---- SimpleDense: weights by mix_layer_add_weight without a dtype ---- */
typedef struct simple_dense {
  int64_t units;
  mix_variable *kernel, *bias;
} simple_dense;

static inline mix_status simple_dense_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  simple_dense *d = mix_layer_data(layer);
  d->kernel = mix_layer_add_weight(layer, "kernel", .shape = MIX_SHAPE(shapes[0].dims[1], d->units),
                                   .initializer = "ones");
  d->bias = mix_layer_add_weight(layer, "bias", .shape = MIX_SHAPE(d->units), .initializer = "zeros");
  return mix_error();
}
static inline mix_list *simple_dense_call(mix_layer *layer, const mix_call_args *args) {
  simple_dense *d = mix_layer_data(layer);
  mix_tensor *y = mix_matmul(mix_call_input(args, 0), mix_variable_value(d->kernel), false, false);
  return mix_list_of(mix_add(y, mix_variable_value(d->bias)));
}
static const mix_layer_class simple_dense_class = {.size = sizeof(mix_layer_class),
                                                   .name = "SimpleDense",
                                                   .instance_size = sizeof(simple_dense),
                                                   .build = simple_dense_build,
                                                   .call = simple_dense_call};
static inline mix_layer *simple_dense_new(int64_t units, const char *dtype) {
  mix_layer *layer = mix_layer_new(&simple_dense_class, .dtype = dtype);
  if (layer) ((simple_dense *)mix_layer_data(layer))->units = units;
  return layer;
}

/* ---- AddRandom: adds a random tensor of the input's dtype; a float32 one would be a dtype error ---- */
static inline mix_list *add_random_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *random =
      mix_stateless_uniform(mix_tensor_from((const int64_t[]){7, 0}, MIX_INT64, MIX_SHAPE(2)),
                            mix_tensor_shape(x), mix_tensor_dtype(x));
  return mix_list_of(mix_add(x, random), random);
}
static const mix_layer_class add_random_class = {
    .size = sizeof(mix_layer_class), .name = "AddRandom", .call = add_random_call};
static inline mix_list *careless_add_random_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *random = mix_stateless_uniform(
      mix_tensor_from((const int64_t[]){7, 0}, MIX_INT64, MIX_SHAPE(2)), mix_tensor_shape(x), MIX_FLOAT32);
  return mix_list_of(mix_add(x, random));
}
static const mix_layer_class careless_add_random_class = {
    .size = sizeof(mix_layer_class), .name = "CarelessAddRandom", .call = careless_add_random_call};

/* ---- MyLayer: two arguments; returns all inputs and further arguments unchanged ---- */
static inline mix_list *my_layer_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_list *results = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(args->inputs); i++) mix_list_append(results, mix_call_input(args, i));
  for (int i = 0; args->arguments && i < mix_list_count(args->arguments); i++)
    mix_list_append(results, mix_call_argument(args, i));
  return results;
}
static const mix_layer_class my_layer_class = {
    .size = sizeof(mix_layer_class), .name = "MyLayer", .call = my_layer_call};

/* ---- Probe: one weight, and a function of the test that runs in the call ---- */
typedef struct probe {
  mix_list *(*call)(mix_layer *layer, const mix_call_args *args);
  mix_variable *weight;
  void *context;
} probe;
static const char *probe_weight_dtype;
static bool probe_no_autocast, probe_not_trainable;
static const char *probe_regularizer;

static inline mix_status probe_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count, (void)shapes;
  ((probe *)mix_layer_data(layer))->weight = mix_layer_add_weight(
      layer, "weight", .initializer = "ones", .dtype = probe_weight_dtype, .no_autocast = probe_no_autocast,
      .not_trainable = probe_not_trainable, .regularizer = probe_regularizer);
  return mix_error();
}
static inline mix_list *probe_call(mix_layer *layer, const mix_call_args *args) {
  probe *p = mix_layer_data(layer);
  return p->call ? p->call(layer, args) : mix_list_of(mix_variable_value(p->weight));
}
static const mix_layer_class probe_class = {.size = sizeof(mix_layer_class),
                                            .name = "Probe",
                                            .instance_size = sizeof(probe),
                                            .build = probe_build,
                                            .call = probe_call};
static inline mix_layer *
probe_new(const char *dtype, mix_list *(*call)(mix_layer *layer, const mix_call_args *args), void *context) {
  mix_layer *layer = mix_layer_new(&probe_class, .dtype = dtype);
  if (!layer) return NULL;
  *(probe *)mix_layer_data(layer) = (probe){call, NULL, context};
  return layer;
}

#endif
