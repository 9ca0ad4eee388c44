#include "base/did_you_mean.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LENGTH = 63 };

static int letter(char c) { return c == '-' ? '_' : tolower((unsigned char)c); }

static int min3(int a, int b, int c) {
  int ab = a < b ? a : b;
  return ab < c ? ab : c;
}

/* Edit distance with swaps of neighbours. Wagner and Fischer, The string-to-string correction problem,
 * Journal of the ACM 21 (1974); swaps after Damerau. */
static int distance(const char *a, const char *b) {
  int rows[3][MAX_LENGTH + 1], n = (int)strlen(a), m = (int)strlen(b);
  for (int j = 0; j <= m; j++) rows[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *row = rows[i % 3];
    const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      bool same = letter(a[i - 1]) == letter(b[j - 1]);
      row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + !same);
      bool swapped =
          i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1]);
      if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
    }
  }
  return rows[n % 3][m];
}

void mix_did_you_mean_try(mix_did_you_mean *nearest, const char *candidate) {
  size_t length = strlen(nearest->word), other = strlen(candidate);
  if (length > MAX_LENGTH || other > MAX_LENGTH) return;
  int d = distance(nearest->word, candidate);
  if (d > (int)(length < other ? length : other) / 3 || (nearest->found && d >= nearest->distance)) return;
  nearest->found = candidate;
  nearest->distance = d;
}

const char *mix_did_you_mean_choice(const char *word, const char *choices, char *text, size_t size) {
  mix_did_you_mean nearest = {.word = word};
  char words[2][MAX_LENGTH + 1]; /* the best so far, and the next */
  int next = 0;
  for (size_t length; *choices; choices += length + (choices[length] == '|')) {
    length = strcspn(choices, "|");
    if (length > MAX_LENGTH) continue;
    snprintf(words[next], sizeof words[next], "%.*s", (int)length, choices);
    mix_did_you_mean_try(&nearest, words[next]);
    if (nearest.found == words[next]) next = !next;
  }
  return mix_did_you_mean_hint(&nearest, text, size);
}

const char *mix_did_you_mean_hint(const mix_did_you_mean *nearest, char *text, size_t size) {
  if (!nearest->found) return "";
  snprintf(text, size, "; did you mean '%s'?", nearest->found);
  return text;
}
