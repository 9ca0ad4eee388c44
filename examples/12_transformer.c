/* A Transformer translates numbers from figures to English words, 4071 to "four thousand seventy one", in
 * mixed precision: two custom layers for positions, masks that pass by themselves, and greedy and beam
 * search.
 *
 *   12_transformer [POLICY [EPOCHS [SEED]]]
 *
 * The policy is mixed_float16 if none is given; float32 trains the same network without mixed precision. */
#include <mixtape/mixtape.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 64, HEADS = 4, LAYERS = 2, NUMBERS = 9999, TEST = 500, BEAMS = 4 };
enum { FIGURES = 4, WORDS = 8, FIGURE_TOKENS = 11 }; /* a figure's token is the figure + 1; 0 fills up */
enum { BEGIN = 1, END, ONE, TWENTY = ONE + 19, HUNDRED = TWENTY + 8, THOUSAND, WORD_TOKENS };
static const char *const names[] = {
    "",         "<",       ">",       "one",       "two",      "three",    "four",    "five",
    "six",      "seven",   "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",  "thirty",
    "forty",    "fifty",   "sixty",   "seventy",   "eighty",   "ninety",   "hundred", "thousand"};

/* ---- two layers of our own ---- */

/* x (batch, positions, units) + sines and cosines of the positions: nothing to learn. */
static mix_list *sine_positions_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0),
             *position = mix_range(0, (double)mix_tensor_shape(x).dims[1], 1, MIX_FLOAT32);
  mix_tensor *wave = mix_range(0, UNITS / 2., 1, MIX_FLOAT32);
  mix_tensor *frequency = mix_exp(mix_multiply(wave, mix_scalar_like(wave, -log(1e4) / (UNITS / 2. - 1))));
  mix_tensor *angle = mix_multiply(mix_expand_dims(position, 1), frequency);
  mix_tensor *signal = mix_concat(2, (mix_tensor *[]){mix_sin(angle), mix_cos(angle)}, 1);
  /* The angles are float32: in float16 they would be wrong by whole turns. x may be float16. */
  return mix_list_of(mix_add(x, mix_cast(signal, mix_tensor_dtype(x))));
}
static const mix_layer_class sine_positions = {.size = sizeof(mix_layer_class),
                                               .name = "SinePositions",
                                               .call = sine_positions_call,
                                               .supports_masking = true};

/* x (batch, positions, units) + a learned row for each position. */
static mix_status position_embedding_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  mix_variable **rows = mix_layer_data(layer);
  *rows = mix_layer_add_weight(layer, "embeddings", .shape = MIX_SHAPE(shapes[0].dims[1], shapes[0].dims[2]));
  return mix_error();
}
static mix_list *position_embedding_call(mix_layer *layer, const mix_call_args *args) {
  mix_variable **rows = mix_layer_data(layer); /* read in the compute dtype */
  return mix_list_of(mix_add(mix_call_input(args, 0), mix_variable_value(*rows)));
}
static const mix_layer_class position_embedding = {.size = sizeof(mix_layer_class),
                                                   .name = "PositionEmbedding",
                                                   .instance_size = sizeof(mix_variable *),
                                                   .build = position_embedding_build,
                                                   .call = position_embedding_call,
                                                   .supports_masking = true};

/* ---- the model: figures and the words so far to the probabilities of the next word at each position ---- */

static mix_tensor *normalized(mix_tensor *x) {
  return mix_call(mix_layer_normalization(.epsilon = 1e-6, .dtype = "float32"), x);
}
static mix_tensor *add(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static mix_tensor *attend(mix_tensor *x, mix_tensor *memory, bool causal) {
  mix_tensor *query = normalized(x);
  mix_layer *attention = mix_multi_head_attention(HEADS, UNITS / HEADS);
  return add(x, mix_call(attention, query, .arguments = mix_list_of(memory ? memory : query),
                         .use_causal_mask = causal));
}
static mix_tensor *feed_forward(mix_tensor *x) {
  mix_tensor *y = mix_call(mix_dense(4 * UNITS, .activation = "relu"), normalized(x));
  return add(x, mix_call(mix_dense(UNITS), y));
}

static mix_model *build(void) {
  mix_tensor *figures = mix_input(.shape = MIX_SHAPE(FIGURES), .dtype = "int32", .name = "figures"),
             *words = mix_input(.shape = MIX_SHAPE(WORDS), .dtype = "int32", .name = "words");
  mix_tensor *memory = mix_call(mix_embedding(FIGURE_TOKENS, UNITS, .mask_zero = true), figures);
  memory = mix_call(mix_layer_new(&position_embedding), memory);
  for (int i = 0; i < LAYERS; i++) memory = feed_forward(attend(memory, NULL, false));
  memory = normalized(memory);
  mix_tensor *x = mix_call(mix_embedding(WORD_TOKENS, UNITS, .mask_zero = true), words);
  x = mix_call(mix_layer_new(&sine_positions), x);
  for (int i = 0; i < LAYERS; i++) x = feed_forward(attend(attend(x, NULL, true), memory, false));
  x = mix_call(mix_dense(WORD_TOKENS, .name = "logits"), normalized(x));
  return mix_model_new(mix_list_of(figures, words),
                       mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

/* ---- data ---- */

static int put_below_100(int number, int32_t *words) {
  int count = 0;
  if (number >= 20) words[count++] = TWENTY + number / 10 - 2, number %= 10;
  if (number) words[count++] = ONE + number - 1;
  return count;
}

/* The figures, and the words with END behind them. */
static void translate(int number, int32_t figures[FIGURES], int32_t words[WORDS]) {
  char text[16];
  int count = 0;
  snprintf(text, sizeof text, "%d", number);
  for (int i = 0; i < FIGURES; i++) figures[i] = i < (int)strlen(text) ? text[i] - '0' + 1 : 0;
  memset(words, 0, WORDS * sizeof *words);
  if (number >= 1000) words[count++] = ONE + number / 1000 - 1, words[count++] = THOUSAND;
  if (number % 1000 >= 100) words[count++] = ONE + number / 100 % 10 - 1, words[count++] = HUNDRED;
  count += put_below_100(number % 100, words + count);
  words[count] = END;
}

typedef struct pairs {
  int32_t figures[NUMBERS][FIGURES], words[NUMBERS][WORDS], before[NUMBERS][WORDS]; /* before: BEGIN first */
} pairs;

/* Each number once, in an order that every run has: the first TEST of them are kept from training. */
static void make(pairs *p) {
  for (int i = 0; i < NUMBERS; i++) {
    translate(i * 7001 % NUMBERS + 1, p->figures[i], p->words[i]); /* 7001 and 9999 have no common factor */
    p->before[i][0] = BEGIN;
    for (int t = 1; t < WORDS; t++) p->before[i][t] = p->words[i][t - 1] == END ? 0 : p->words[i][t - 1];
  }
}

/* ---- search ---- */

static mix_list *probabilities(void *model, mix_list *arguments) {
  return mix_list_of(mix_model_call(model, arguments));
}

typedef struct beam {
  int32_t words[WORDS + 1]; /* BEGIN, the words, END */
  double score;             /* sum of logarithms */
} beam;

/* The `width` best of the beams of one sentence, each continued by each word; an ended one stays as it is. */
static void extend(beam *beams, int width, int t, const float *next) {
  beam best[BEAMS];
  for (int i = 0; i < width; i++) best[i] = (beam){.words = {BEGIN}, .score = -INFINITY};
  for (int b = 0; b < width; b++)
    for (int word = 0; word < WORD_TOKENS; word++) {
      beam candidate = beams[b];
      const bool ended = !beams[b].words[t] || beams[b].words[t] == END;
      if (ended ? word != 0 : word < END) continue;
      candidate.words[t + 1] = word;
      if (!ended) candidate.score += log(next[b * WORDS * WORD_TOKENS + t * WORD_TOKENS + word]);
      for (int i = 0; i < width; i++)
        if (candidate.score > best[i].score) {
          const beam moved = best[i];
          best[i] = candidate, candidate = moved;
        }
    }
  memcpy(beams, best, (size_t)width * sizeof *beams);
}

/* Translates `count` numbers; the best beam of number i is beams[i * width]. A width of 1 is greedy search.
 */
static bool search(mix_function *function, const int32_t (*figures)[FIGURES], int count, int width,
                   beam *beams) {
  static int32_t source[TEST * BEAMS][FIGURES], words[TEST * BEAMS][WORDS];
  static float next[TEST * BEAMS][WORDS][WORD_TOKENS];
  const int rows = count * width;
  for (int i = 0; i < rows; i++) {
    memcpy(source[i], figures[i / width], sizeof *source);
    beams[i] = (beam){.words = {BEGIN}, .score = i % width ? -INFINITY : 0};
  }
  for (int t = 0; t < WORDS; t++)
    MIX_SCOPE {
      for (int i = 0; i < rows; i++) memcpy(words[i], beams[i].words, sizeof *words);
      mix_list *found = mix_function_call(
          function, mix_list_of(mix_tensor_from(source, MIX_INT32, MIX_SHAPE(rows, FIGURES)),
                                mix_tensor_from(words, MIX_INT32, MIX_SHAPE(rows, WORDS))));
      if (found) mix_tensor_read(mix_list_get(found, 0), MIX_FLOAT32, next, rows * WORDS * WORD_TOKENS);
      for (int i = 0; i < count && !mix_error(); i++) extend(&beams[i * width], width, t, next[i * width][0]);
    }
  return !mix_error();
}

/* The share of the numbers whose words are all right. */
static void score(mix_function *function, const pairs *p, int width, const char *policy) {
  static beam beams[TEST * BEAMS];
  int right = 0;
  if (!search(function, p->figures, TEST, width, beams)) return;
  for (int i = 0; i < TEST; i++) right += !memcmp(beams[i * width].words + 1, p->words[i], sizeof *p->words);
  printf("%s: %s search: %.4f of %d numbers\n", policy, width > 1 ? "beam" : "greedy", right / (double)TEST,
         TEST);
  for (int i = 0; i < 3; i++) {
    printf("  ");
    for (int k = 0; k < FIGURES && p->figures[i][k]; k++) putchar('0' + p->figures[i][k] - 1);
    for (const int32_t *w = beams[i * width].words + 1; *w && *w != END; w++) printf(" %s", names[*w]);
    printf("\n");
  }
}

int main(int argc, char **argv) {
  static pairs p;
  const char *policy = argc > 1 ? argv[1] : "mixed_float16";
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(argc > 3 ? (uint64_t)atoi(argv[3]) : 1);
  mix_set_global_policy(policy);
  make(&p);
  mix_model *model = build();
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam(),
                    .metrics = {"accuracy"});
  const int64_t rows = NUMBERS - TEST;
  mix_tensor *figures = mix_tensor_from(p.figures[TEST], MIX_INT32, MIX_SHAPE(rows, FIGURES)),
             *before = mix_tensor_from(p.before[TEST], MIX_INT32, MIX_SHAPE(rows, WORDS)),
             *words = mix_tensor_from(p.words[TEST], MIX_INT32, MIX_SHAPE(rows, WORDS));
  mix_model_fit(model, mix_list_of(figures, before), words, .batch_size = 64,
                .epochs = argc > 2 ? atoi(argv[2]) : 3, .verbose = 2);
  mix_function *function = mix_function_new(probabilities, model);
  score(function, &p, 1, policy);
  score(function, &p, BEAMS, policy);
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
