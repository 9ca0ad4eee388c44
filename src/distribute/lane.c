/* Sums of buckets. The sum of an element does not depend on its bucket: rank 0 + rank 1 + ... */
#include "distribute/lane.h"

#include "base/alloc.h"
#include "base/error.h"
#include "distribute/sum.h"
#include "tensor/shape.h"
#include <string.h>

enum { SMALL = 8 << 10 }; /* bytes that every rank gets whole, in one message, and sums itself */

static void *scratch_of(mix_scratch *s, size_t bytes) {
  if (s->bytes >= bytes && s->data) return s->data;
  mix_free(s->data);
  s->bytes = bytes;
  s->data = mix_alloc(bytes);
  if (!s->data) s->bytes = 0, mix_error_clear();
  return s->data;
}

/* Every rank gets everything. */
static int sum_whole(mix_lane *x, const void *own, void *result, mix_dtype dtype, int64_t count) {
  const int ranks = x->ranks;
  const size_t bytes = (size_t)count * mix_dtype_size(dtype);
  size_t *at = scratch_of(&x->sums, sizeof *at * (size_t)(ranks + 1));
  void *all = scratch_of(&x->received, bytes * (size_t)ranks);
  if (!at || !all) return MIX_LANE_NO_MEMORY;
  for (int r = 0; r <= ranks; r++) at[r] = bytes * (size_t)r;
  const int code = x->transport->gather(x->link, own, all, at);
  if (!code) mix_sum_parts(dtype, all, ranks, count, result);
  return code;
}

/* Each rank sums its chunk and sends it to all. `result` may be `own`. */
static int sum_chunks(mix_lane *x, const void *own, void *result, mix_dtype dtype, int64_t count) {
  const int ranks = x->ranks, rank = x->rank;
  const size_t size = mix_dtype_size(dtype);
  size_t at[ranks + 1];
  for (int r = 0; r <= ranks; r++) at[r] = (size_t)(count * r / ranks) * size;
  const size_t bytes = at[rank + 1] - at[rank];
  void *parts = scratch_of(&x->received, bytes * (size_t)ranks), *sums = scratch_of(&x->sums, bytes);
  if (!parts || !sums) return MIX_LANE_NO_MEMORY;
  int code = x->transport->exchange(x->link, own, at, parts, bytes);
  if (code) return code;
  mix_sum_parts(dtype, parts, ranks, (int64_t)(bytes / size), sums);
  return x->transport->gather(x->link, sums, result, at);
}

/* In place, from the bucket's only segment or from a copy of all. */
int mix_lane_sum(mix_lane *x, const mix_bucket *bucket) {
  const size_t size = mix_dtype_size(bucket->dtype);
  const bool single = bucket->segment_count == 1;
  char *data = single ? bucket->segments[0].data : scratch_of(&x->packed, bucket->bytes), *to = data;
  if (!data) return MIX_LANE_NO_MEMORY;
  for (int i = 0; i < bucket->segment_count && !single; i++) {
    memcpy(to, bucket->segments[i].data, (size_t)bucket->segments[i].count * size);
    to += (size_t)bucket->segments[i].count * size;
  }
  int code = 0;
  const size_t part = MIX_BUCKET_LARGEST / size * size;
  for (size_t done = 0; done < bucket->bytes && !code; done += part) {
    const size_t bytes = bucket->bytes - done < part ? bucket->bytes - done : part;
    code = bytes <= SMALL ? sum_whole(x, data + done, data + done, bucket->dtype, (int64_t)(bytes / size))
                          : sum_chunks(x, data + done, data + done, bucket->dtype, (int64_t)(bytes / size));
  }
  const char *from = data;
  for (int i = 0; i < bucket->segment_count && !single && !code; i++) {
    memcpy(bucket->segments[i].data, from, (size_t)bucket->segments[i].count * size);
    from += (size_t)bucket->segments[i].count * size;
  }
  return code;
}

int mix_lane_gather(mix_lane *x, const void *own, size_t bytes, void *all) {
  size_t at[x->ranks + 1];
  for (int r = 0; r <= x->ranks; r++) at[r] = bytes * (size_t)r;
  return x->transport->gather(x->link, own, all, at);
}

void mix_lane_release(mix_lane *x) {
  mix_free(x->packed.data);
  mix_free(x->received.data);
  mix_free(x->sums.data);
}
