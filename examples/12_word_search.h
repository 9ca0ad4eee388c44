/* Greedy and beam search of 12_transformer.c: the words that the model holds most probable, one at a time. */
#ifndef WORD_SEARCH_H
#define WORD_SEARCH_H

#include "12_number_words.h"
#include <math.h>
#include <mixtape/mixtape.h>

enum { BEAMS = 4 };

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
  for (int t = 0; t < WORDS; t++) {
    MIX_SCOPE_HERE;
    for (int i = 0; i < rows; i++) memcpy(words[i], beams[i].words, sizeof *words);
    mix_list *found =
        mix_function_call(function, mix_list_of(mix_tensor_from(source, MIX_INT32, MIX_SHAPE(rows, FIGURES)),
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

#endif
