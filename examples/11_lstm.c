/* A task of sequences in mixed precision: in which order did two marks come (Hochreiter and Schmidhuber: Long
 * short-term memory, 1997, task 6a, with shorter sequences)? A sequence has 20 to 30 symbols, an X or a Y
 * near its begin, another one near its middle, and noise. The classes are XX, XY, YX and YY: the layer has to
 * keep the first mark for many steps. Padding behind a sequence is masked.
 *
 *   11_lstm [POLICY [EPOCHS [SEED]]]
 *
 * The policy is mixed_float16 if none is given; float32 trains the same network without mixed precision. */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PADDING, X, Y, NOISE, SYMBOLS = 8, STEPS = 30, SHORTEST = 20, CLASSES = 4 };

typedef struct sequences {
  mix_tensor *symbols, *labels;
} sequences;

/* One of `count` numbers from `first` on. */
static int draw(const float **random, int first, int count) { return first + (int)(*(*random)++ * count); }

static sequences make(mix_generator *generator, int count) {
  enum { DRAWS = STEPS + 5 };
  int32_t(*symbols)[STEPS] = calloc((size_t)count, sizeof *symbols),
  *labels = calloc((size_t)count, sizeof *labels);
  float *random = calloc((size_t)count * DRAWS, sizeof *random);
  mix_tensor *numbers = mix_random_uniform(generator, MIX_SHAPE((int64_t)count * DRAWS), MIX_FLOAT32);
  sequences made = {NULL, NULL};
  if (symbols && labels && random && !mix_tensor_read(numbers, MIX_FLOAT32, random, (int64_t)count * DRAWS)) {
    for (int i = 0; i < count; i++) {
      const float *next = random + (size_t)i * DRAWS;
      const int length = draw(&next, SHORTEST, STEPS - SHORTEST + 1);
      for (int t = 0; t < length; t++) symbols[i][t] = draw(&next, NOISE, SYMBOLS - NOISE);
      const int first = draw(&next, X, 2), second = draw(&next, X, 2);
      symbols[i][draw(&next, 2, 4)] = first;
      symbols[i][draw(&next, 12, 6)] = second;
      labels[i] = 2 * (first - X) + second - X;
    }
    made = (sequences){mix_tensor_from(symbols, MIX_INT32, MIX_SHAPE(count, STEPS)),
                       mix_tensor_from(labels, MIX_INT32, MIX_SHAPE(count))};
  }
  free(symbols);
  free(labels);
  free(random);
  return made;
}

static mix_model *build(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(STEPS), .dtype = "int32");
  mix_tensor *x = mix_call(mix_embedding(SYMBOLS, 16, .mask_zero = true), inputs);
  x = mix_call(mix_lstm(32), x);
  x = mix_call(mix_dense(CLASSES, .name = "logits"), x);
  /* The softmax is computed in float32: its sum of exponentials is inaccurate in 16 bits. */
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

int main(int argc, char **argv) {
  const char *policy = argc > 1 ? argv[1] : "mixed_float16";
  const int epochs = argc > 2 ? atoi(argv[2]) : 10;
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_generator *generator = mix_generator_new(1);
  const sequences train = make(generator, 3000), test = make(generator, 1000);
  mix_set_seed(argc > 3 ? (uint64_t)atoi(argv[3]) : 1);
  mix_set_global_policy(policy);
  mix_model *model = build();
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0.01), .metrics = {"accuracy"});
  mix_model_fit(model, train.symbols, train.labels, .batch_size = 50, .epochs = epochs, .verbose = 2);
  mix_logs *scores = mix_model_evaluate(model, test.symbols, test.labels, .verbose = MIX_SILENT);
  if (scores) printf("%s: test accuracy %.4f\n", policy, mix_logs_get(scores, "accuracy"));
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
