/* The data of 12_transformer.c: numbers in figures and in English words, as tokens. */
#ifndef NUMBER_WORDS_H
#define NUMBER_WORDS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 9999, TEST = 500 };
enum { FIGURES = 4, WORDS = 8, FIGURE_TOKENS = 11 }; /* a figure's token is the figure + 1; 0 fills up */
enum { BEGIN = 1, END, ONE, TWENTY = ONE + 19, HUNDRED = TWENTY + 8, THOUSAND, WORD_TOKENS };
static const char *const names[] = {
    "",         "<",       ">",       "one",       "two",      "three",    "four",    "five",
    "six",      "seven",   "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",  "thirty",
    "forty",    "fifty",   "sixty",   "seventy",   "eighty",   "ninety",   "hundred", "thousand"};

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

#endif
