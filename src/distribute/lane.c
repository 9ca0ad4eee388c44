/* Sums of buckets. The sum of an element does not depend on its bucket: rank 0 + rank 1 + ... */
#include "distribute/lane.h"

#include "base/alloc.h"
#include "base/error.h"
#include "distribute/sum.h"
#include "tensor/shape.h"
#include <string.h>

enum { SMALL = 8 << 10 }; /* bytes that every rank gets whole, in one message, and sums itself */

void *mix_lane_scratch(mix_scratch *s, size_t bytes) {
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
  size_t *at = mix_lane_scratch(&x->sums, sizeof *at * (size_t)(ranks + 1));
  void *all = mix_lane_scratch(&x->received, bytes * (size_t)ranks);
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
  void *parts = mix_lane_scratch(&x->received, bytes * (size_t)ranks),
       *sums = mix_lane_scratch(&x->sums, bytes);
  if (!parts || !sums) return MIX_LANE_NO_MEMORY;
  int code = x->transport->exchange(x->link, own, at, parts, bytes);
  if (code) return code;
  mix_sum_parts(dtype, parts, ranks, (int64_t)(bytes / size), sums);
  return x->transport->gather(x->link, sums, result, at);
}

/* ---- what goes over the link ---- */

/* A call that gives up leaves MPI the addresses it was given, and other ranks may still send there: all of
 * them are the lane's, which nobody frees after a failure. */
static void *part_of(mix_lane *x, size_t bytes) {
  return mix_lane_scratch(&x->packed, bytes < MIX_BUCKET_LARGEST ? bytes : MIX_BUCKET_LARGEST);
}

/* Bytes [done, done + bytes) of the bucket into the part, or out of it. A bucket of several segments is one
 * part. */
static void copy_part(const mix_bucket *bucket, size_t done, size_t bytes, char *part, bool out) {
  const size_t size = mix_dtype_size(bucket->dtype);
  for (int i = 0; i < bucket->segment_count; i++) {
    char *data = (char *)bucket->segments[i].data + done;
    const size_t length = bucket->segment_count == 1 ? bytes : (size_t)bucket->segments[i].count * size;
    memcpy(out ? data : part, out ? part : data, length);
    part += length;
  }
}

int mix_lane_sum(mix_lane *x, const mix_bucket *bucket) {
  const size_t size = mix_dtype_size(bucket->dtype);
  char *part = part_of(x, bucket->bytes);
  int code = part ? 0 : MIX_LANE_NO_MEMORY;
  for (size_t done = 0, bytes; done < bucket->bytes && !code; done += bytes) {
    bytes = bucket->bytes - done < MIX_BUCKET_LARGEST ? bucket->bytes - done : MIX_BUCKET_LARGEST;
    copy_part(bucket, done, bytes, part, false);
    code = (bytes <= SMALL ? sum_whole : sum_chunks)(x, part, part, bucket->dtype, (int64_t)(bytes / size));
    if (!code) copy_part(bucket, done, bytes, part, true);
  }
  return code;
}

int mix_lane_broadcast(mix_lane *x, void *data, size_t bytes, int root) {
  char *part = part_of(x, bytes);
  int code = part ? 0 : MIX_LANE_NO_MEMORY;
  for (size_t done = 0, length; done < bytes && !code; done += length) {
    length = bytes - done < MIX_BUCKET_LARGEST ? bytes - done : MIX_BUCKET_LARGEST;
    if (x->rank == root) memcpy(part, (char *)data + done, length);
    code = x->transport->broadcast(x->link, part, length, root);
    if (!code && x->rank != root) memcpy((char *)data + done, part, length);
  }
  return code;
}

static int gather_part(mix_lane *x, const char *own, size_t length, char *all, size_t stride) {
  const size_t ranks = (size_t)x->ranks;
  size_t at[ranks + 1];
  char *part = mix_lane_scratch(&x->packed, length), *parts = mix_lane_scratch(&x->received, length * ranks);
  if (!part || !parts) return MIX_LANE_NO_MEMORY;
  for (size_t r = 0; r <= ranks; r++) at[r] = length * r;
  memcpy(part, own, length);
  const int code = x->transport->gather(x->link, part, parts, at);
  for (size_t r = 0; r < ranks && !code; r++) memcpy(all + stride * r, parts + at[r], length);
  return code;
}

int mix_lane_gather(mix_lane *x, const void *own, size_t bytes, void *all) {
  const size_t each = MIX_BUCKET_LARGEST / (size_t)x->ranks;
  int code = 0;
  for (size_t done = 0, length; done < bytes && !code; done += length) {
    length = bytes - done < each ? bytes - done : each;
    code = gather_part(x, (const char *)own + done, length, (char *)all + done, bytes);
  }
  return code;
}

void mix_lane_release(mix_lane *x) {
  mix_free(x->packed.data);
  mix_free(x->received.data);
  mix_free(x->sums.data);
}
