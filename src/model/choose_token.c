/* The next token by its logits: the largest, or a draw from the largest (top-k; top-p of Holtzman et al.: The
 * curious case of neural text degeneration, arXiv:1904.09751). */
#include "base/philox.h"
#include "model/decode.h"
#include <math.h>

static int64_t largest(const float *logits, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

double mix_log_total(const float *logits, int64_t count) {
  const double high = logits[largest(logits, count)];
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += exp(logits[i] - high);
  return high + log(sum);
}

/* In [0, 1), of 53 bits. */
static double uniform(uint64_t seed, uint64_t position, uint64_t sequence) {
  const mix_philox block = mix_philox_block(seed, position, sequence);
  return (double)(((uint64_t)block.v[0] << 32 | block.v[1]) >> 11) * 0x1p-53;
}

/* ---- a heap of tokens, whose first is the largest; of equal ones the one of the lowest number ---- */

static bool is_before(const float *logits, int32_t a, int32_t b) {
  return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
}

static void sink(const float *logits, int32_t *heap, int64_t count, int64_t at) {
  const int32_t token = heap[at];
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && is_before(logits, heap[child + 1], heap[child])) child++;
    if (!is_before(logits, heap[child], token)) break;
    heap[at] = heap[child];
  }
  heap[at] = token;
}

/* Moves the first behind the `count - 1` others. */
static int32_t pop(const float *logits, int32_t *heap, int64_t count) {
  const int32_t first = heap[0];
  heap[0] = heap[count - 1];
  heap[count - 1] = first;
  sink(logits, heap, count - 1, 0);
  return first;
}

/* ---- draws ---- */

typedef struct weights {
  const float *logits;
  double high, temperature;
} weights;

/* Not normalised: 1 for the largest. */
static double weight(const weights *w, int64_t token) {
  return exp((w->logits[token] - w->high) / w->temperature);
}

/* From all tokens, in their order. */
static int64_t draw_from_all(const weights *w, int64_t count, double share) {
  double total = 0, sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < count; i++) total += weight(w, i);
  for (int64_t i = 0; i < count; i++) {
    const double own = weight(w, i);
    if (own > 0) last = i;
    if ((sum += own) > share * total) return last;
  }
  return last; /* the sum was rounded below the share */
}

/* From the largest, in falling order: `kept` lie behind the heap, the largest last. */
static int64_t draw_from_largest(const weights *w, const mix_token_choice *choice, int64_t count,
                                 double share, int32_t *heap) {
  const int64_t most = choice->top_k && choice->top_k < count ? choice->top_k : count;
  double total = 0, kept = 0, sum = 0;
  for (int64_t i = 0; i < count; i++) heap[i] = (int32_t)i;
  for (int64_t i = count / 2 - 1; i >= 0; i--) sink(w->logits, heap, count, i);
  if (most < count)
    for (int64_t n = 0; n < most; n++) total += weight(w, pop(w->logits, heap, count - n));
  else
    for (int64_t i = 0; i < count; i++) total += weight(w, i);
  int64_t number = 0;
  while (number < most && (number == 0 || kept < choice->top_p * total)) {
    const int32_t token = most < count ? heap[count - 1 - number] : pop(w->logits, heap, count - number);
    kept += weight(w, token);
    number++;
  }
  for (int64_t n = 0; n < number; n++)
    if ((sum += weight(w, heap[count - 1 - n])) > share * kept) return heap[count - 1 - n];
  return heap[count - number];
}

int64_t mix_choose_token(const mix_token_choice *choice, const float *logits, int64_t count,
                         uint64_t position, uint64_t sequence, int32_t *order) {
  const int64_t best = largest(logits, count);
  if (!choice->draws) return best;
  const weights w = {logits, logits[best], choice->temperature};
  const double share = uniform(choice->seed, position, sequence);
  if (isinf(w.high)) return best;
  if (!choice->top_k && choice->top_p >= 1) return draw_from_all(&w, count, share);
  return draw_from_largest(&w, choice, count, share, order);
}
