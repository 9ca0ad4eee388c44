/* The three layers of Keras's Policy reference. SimpleDense has a float32 weight that casts itself. AddRandom
 * makes tensors of its input's dtype. MyLayer shows that only the first argument of a call is cast. */
#include <mixtape/mixtape.h>

#include <stdio.h>

/* ---- SimpleDense: x (batch, in) times kernel (in, 10) ---- */

typedef struct simple_dense {
  mix_variable *kernel;
} simple_dense;

static mix_status simple_dense_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  const int64_t in = input_shapes[0].dims[input_shapes[0].rank - 1];
  simple_dense *self = mix_layer_data(layer);
  self->kernel =
      mix_layer_add_weight(layer, "kernel", .shape = MIX_SHAPE(in, 10)); /* float32 under mixed_float16 */
  return mix_error();
}

static mix_list *simple_dense_call(mix_layer *layer, const mix_call_args *args) {
  simple_dense *self = mix_layer_data(layer);
  /* Both operands are float16 here. */
  return mix_list_of(mix_matmul(mix_call_input(args, 0), mix_variable_value(self->kernel), false, false));
}

static const mix_layer_class simple_dense_class = {.size = sizeof(mix_layer_class),
                                                   .name = "SimpleDense",
                                                   .instance_size = sizeof(simple_dense),
                                                   .build = simple_dense_build,
                                                   .call = simple_dense_call};

/* ---- AddRandom: x + normal noise of x's dtype: float16 + float32 would be a TypeError ---- */

typedef struct add_random {
  mix_generator *generator;
} add_random;

static mix_status add_random_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count, (void)input_shapes;
  mix_generator *generator = ((add_random *)mix_layer_data(layer))->generator = mix_generator_new(1);
  return mix_layer_add_generator(layer, generator); /* saved with the layer in checkpoints */
}

static mix_list *add_random_call(mix_layer *layer, const mix_call_args *args) {
  add_random *self = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  return mix_list_of(
      mix_add(x, mix_random_normal(self->generator, mix_tensor_shape(x), mix_tensor_dtype(x))));
}

static const mix_layer_class add_random_class = {.size = sizeof(mix_layer_class),
                                                 .name = "AddRandom",
                                                 .instance_size = sizeof(add_random),
                                                 .build = add_random_build,
                                                 .call = add_random_call};

/* ---- MyLayer: (a + 1, b + 1). b is not the first argument, so it is not cast. ---- */

static mix_list *my_layer_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *a = mix_call_input(args, 0), *b = mix_call_argument(args, 0);
  return mix_list_of(mix_add(a, mix_scalar_like(a, 1)), mix_add(b, mix_scalar_like(b, 1)));
}

static const mix_layer_class my_layer_class = {
    .size = sizeof(mix_layer_class), .name = "MyLayer", .call = my_layer_call};

static void print_dtype(const char *what, mix_tensor *tensor) {
  printf("%s: %s\n", what, mix_dtype_name(mix_tensor_dtype(tensor)));
}

int main(void) {
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x = mix_fill(MIX_SHAPE(10, 10), 1, MIX_FLOAT32);

  mix_layer *dense = mix_layer_new(&simple_dense_class, .dtype = "mixed_float16");
  print_dtype("SimpleDense result", mix_call(dense, x));
  mix_variable *kernel = mix_list_get(mix_layer_weights(dense), 0);
  char text[256];
  printf("SimpleDense kernel: %s\n%s\n", mix_dtype_name(mix_variable_dtype(kernel)),
         mix_variable_text(kernel, text, sizeof text));

  print_dtype("AddRandom result", mix_call(mix_layer_new(&add_random_class, .dtype = "mixed_float16"), x));

  mix_tensor *one = mix_scalar(1, MIX_FLOAT32);
  mix_list *results = mix_call_outputs(mix_layer_new(&my_layer_class, .dtype = "float64"), one,
                                       .arguments = mix_list_of(one));
  print_dtype("MyLayer first result", mix_list_get(results, 0));
  print_dtype("MyLayer second result", mix_list_get(results, 1));

  mix_add(mix_scalar(1, MIX_FLOAT16), one); /* there is no implicit promotion */
  char message[512];
  const mix_status status = mix_error_take(message, sizeof message);
  printf("float16 + float32: %s\n", mix_status_name(status));
  fprintf(stderr, "%s\n", message);

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
