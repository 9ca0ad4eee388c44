/* The data of 18_finetune.c: numbers and their words in one line, in the modern and in the old order. */
#ifndef NUMBER_LINES_H
#define NUMBER_LINES_H

#include "12_number_words.h"
#include <stdbool.h>

/* Tokens are those of the words, "and", and the ten figures. */
enum { AND = WORD_TOKENS, FIGURE, TOKENS = FIGURE + 10, LENGTH = FIGURES + WORDS };

typedef struct lines {
  int32_t line[NUMBERS][LENGTH]; /* figures, aligned right, BEGIN, the words without the last */
  int32_t next[NUMBERS][LENGTH]; /* from BEGIN on, what comes next; 0 before */
} lines;

/* "seventy one" becomes "one and seventy". */
static void put_units_first(int32_t words[WORDS]) {
  for (int i = 0; words[i] != END; i++) {
    const int32_t tens = words[i];
    if (tens < TWENTY || tens >= HUNDRED || words[i + 1] == END) continue;
    words[i] = words[i + 1], words[i + 1] = AND, words[i + 2] = tens, words[i + 3] = END;
    return;
  }
}

static void make_lines(lines *made, bool old) {
  static pairs p;
  make(&p);
  memset(made, 0, sizeof *made);
  for (int i = 0; i < NUMBERS; i++) {
    int count = 0;
    if (old) put_units_first(p.words[i]);
    while (count < FIGURES && p.figures[i][count]) count++;
    for (int k = 0; k < count; k++) made->line[i][FIGURES - count + k] = FIGURE + p.figures[i][k] - 1;
    for (int t = 0; t < WORDS; t++) {
      const int32_t before = t ? p.words[i][t - 1] : BEGIN;
      made->line[i][FIGURES + t] = before == END ? 0 : before;
      made->next[i][FIGURES + t] = p.words[i][t];
    }
  }
}

/* Are the most probable words those of the number? */
static bool all_right(float (*p)[TOKENS], const int32_t *next) {
  for (int t = FIGURES; t < LENGTH; t++)
    for (int word = 0; word < TOKENS; word++)
      if (word != next[t] && p[t][word] >= p[t][next[t]]) return false;
  return true;
}

#endif
