/* A variational autoencoder of drawn digits: 784 numbers to 8 and back. Its loss is of several tensors: the
 * sampling layer adds the divergence of its distribution from the normal one, and compile's loss is the
 * reconstruction. Nothing but the images is needed as labels. Mixed precision: the layer's sums are float32.
 *
 *   19_vae [EPOCHS] */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 784, HIDDEN = 128, LATENT = 8 };

/* ---- z = mean + exp(log_variance / 2) * noise ---- */

typedef struct sampling {
  mix_generator *noise;
} sampling;

static mix_status sampling_build(mix_layer *layer, int count, const mix_shape *shapes) {
  sampling *self = mix_layer_data(layer);
  (void)count, (void)shapes;
  self->noise = mix_generator_new(7);
  return mix_layer_add_generator(layer, self->noise);
}

/* The divergence from N(0, 1), summed over the numbers of a sample: Kingma and Welling, 2013, appendix B. */
static mix_tensor *divergence(mix_tensor *mean, mix_tensor *log_variance) {
  mix_tensor *sum = mix_subtract(mix_add(mix_square(mean), mix_exp(log_variance)), log_variance);
  mix_tensor *each =
      mix_multiply(mix_subtract(sum, mix_scalar(1, MIX_FLOAT32)), mix_scalar(0.5, MIX_FLOAT32));
  return mix_reduce_mean(mix_reduce_sum(each, MIX_AXES(-1), false), MIX_ALL_AXES, false);
}

static mix_list *sampling_call(mix_layer *layer, const mix_call_args *args) {
  sampling *self = mix_layer_data(layer);
  mix_tensor *mean = mix_cast(mix_call_input(args, 0), MIX_FLOAT32);
  mix_tensor *log_variance = mix_cast(mix_call_input(args, 1), MIX_FLOAT32), *z = mean;
  mix_tensor *loss = divergence(mean, log_variance);
  mix_layer_add_loss(layer, mix_multiply(loss, mix_scalar(1.0 / PIXELS, MIX_FLOAT32)));
  mix_layer_add_metric(layer, loss, "divergence");
  if (args->training) {
    mix_tensor *deviation = mix_exp(mix_multiply(log_variance, mix_scalar(0.5, MIX_FLOAT32)));
    mix_tensor *noise = mix_random_normal(self->noise, mix_tensor_shape(mean), MIX_FLOAT32);
    z = mix_add(mean, mix_multiply(deviation, noise));
  }
  return mix_list_of(mix_cast(z, mix_tensor_dtype(mix_call_input(args, 0))));
}

static const mix_layer_class sampling_class = {.size = sizeof(mix_layer_class),
                                               .name = "Sampling",
                                               .instance_size = sizeof(sampling),
                                               .build = sampling_build,
                                               .call = sampling_call};

/* ---- the models ---- */

static mix_model *make_decoder(void) {
  mix_tensor *z = mix_input(.shape = MIX_SHAPE(LATENT));
  mix_tensor *x = mix_call(mix_dense(PIXELS), mix_call(mix_dense(HIDDEN, "relu"), z));
  return mix_model_new(z, mix_call(mix_activation("sigmoid", .dtype = "float32"), x), .name = "decoder");
}

static mix_model *make_vae(mix_model *decoder) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(PIXELS)), *h = mix_call(mix_dense(HIDDEN, "relu"), x);
  mix_list *distribution = mix_list_of(mix_call(mix_dense(LATENT), h), mix_call(mix_dense(LATENT), h));
  mix_tensor *z = mix_call(mix_layer_new(&sampling_class), distribution);
  return mix_model_new(x, mix_call(mix_model_layer(decoder), z), .name = "vae");
}

/* An image as characters, two rows in one. */
static void draw(mix_tensor *image) {
  static const char *const tones = " .:*#";
  float pixels[PIXELS];
  if (mix_tensor_read(image, MIX_FLOAT32, pixels, PIXELS) != MIX_OK) return;
  for (int row = 0; row < 28; row += 2) {
    for (int column = 0; column < 28; column++) {
      const float tone = (pixels[28 * row + column] + pixels[28 * row + 28 + column]) / 2;
      putchar(tones[tone < 0.1f ? 0 : tone < 0.3f ? 1 : tone < 0.5f ? 2 : tone < 0.7f ? 3 : 4]);
    }
    putchar('\n');
  }
}

int main(int argc, char **argv) {
  const int epochs = argc > 1 ? atoi(argv[1]) : 10;
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  mix_digits digits = mix_digits_load();
  mix_model *decoder = make_decoder(), *vae = make_vae(decoder);
  mix_model_compile(vae, .loss = "binary_crossentropy", .optimizer = mix_adam(.learning_rate = 2e-3));
  mix_history *history =
      mix_model_fit(vae, digits.x_train, digits.x_train, .batch_size = 128, .epochs = epochs,
                    .validation_x = digits.x_test, .validation_y = digits.x_test, .quiet = true);
  for (int e = 0; e < mix_history_epochs(history); e++) {
    const mix_logs *logs = mix_history_epoch(history, e);
    printf("Epoch %d: loss %.4f, divergence %.2f; test loss %.4f\n", e + 1, mix_logs_get(logs, "loss"),
           mix_logs_get(logs, "divergence"), mix_logs_get(logs, "val_loss"));
  }

  /* A digit that nobody has drawn: the decoder of noise. */
  mix_tensor *noise = mix_random_normal(mix_generator_new(3), MIX_SHAPE(1, LATENT), MIX_FLOAT32);
  mix_list *drawn = mix_model_predict_on_batch(decoder, noise);
  if (drawn) draw(mix_list_get(drawn, 0));
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
