/* Sums of which each rank gets its share, and shares that all ranks get. Both are what the sum of a bucket
 * does with even chunks (lane.c), for shares that somebody else has chosen. */
#include "distribute/lane.h"
#include "distribute/sum.h"

#include <string.h>

typedef struct range {
  int64_t first, last; /* elements of a segment */
} range;

/* The elements of rank r in a range of a segment. */
static range share_in(const mix_lane *x, const mix_division *division, int r, range of) {
  const int64_t begin = mix_division_begin(division, x->ranks, r),
                end = mix_division_begin(division, x->ranks, r + 1);
  range share = {begin > of.first ? begin : of.first, end < of.last ? end : of.last};
  if (share.last < share.first) share.last = share.first;
  return share;
}

/* Copies the shares of rank r in a range of all segments into `part`, or out of it. Returns their bytes. */
static size_t copy_shares(const mix_lane *x, const mix_bucket *bucket, int r, range of, char *part,
                          bool out) {
  const size_t size = mix_dtype_size(bucket->dtype);
  size_t bytes = 0;
  for (int i = 0; i < bucket->segment_count; i++) {
    const range share = share_in(x, &bucket->segments[i].division, r, of);
    const size_t length = (size_t)(share.last - share.first) * size;
    char *data = (char *)bucket->segments[i].data + (size_t)share.first * size;
    if (length) memcpy(out ? data : part + bytes, out ? part + bytes : data, length);
    bytes += length;
  }
  return bytes;
}

static int scatter_range(mix_lane *x, const mix_bucket *bucket, range of, size_t most) {
  size_t at[x->ranks + 1];
  char *part = mix_lane_scratch(&x->packed, most);
  if (!part) return MIX_LANE_NO_MEMORY;
  at[0] = 0;
  for (int r = 0; r < x->ranks; r++) at[r + 1] = at[r] + copy_shares(x, bucket, r, of, part + at[r], false);
  const size_t own = at[x->rank + 1] - at[x->rank];
  void *parts = mix_lane_scratch(&x->received, own * (size_t)x->ranks + 1),
       *sums = mix_lane_scratch(&x->sums, own + 1);
  if (!parts || !sums) return MIX_LANE_NO_MEMORY;
  const int code = x->transport->exchange(x->link, part, at, parts, own);
  if (code || !own) return code;
  mix_sum_parts(bucket->dtype, parts, x->ranks, (int64_t)(own / mix_dtype_size(bucket->dtype)), sums);
  copy_shares(x, bucket, x->rank, of, sums, true);
  return 0;
}

int mix_lane_scatter(mix_lane *x, const mix_bucket *bucket) {
  const size_t size = mix_dtype_size(bucket->dtype);
  if (bucket->segment_count > 1) return scatter_range(x, bucket, (range){0, INT64_MAX}, bucket->bytes);
  /* One rank may get everything, from all. */
  const int64_t count = bucket->segments[0].count, most = MIX_BUCKET_LARGEST / (int64_t)size / x->ranks;
  int code = 0;
  for (int64_t first = 0; first < count && !code; first += most) {
    const range of = {first, count - first < most ? count : first + most};
    code = scatter_range(x, bucket, of, (size_t)(of.last - of.first) * size);
  }
  return code;
}

static int collect_range(mix_lane *x, char *data, size_t size, const mix_division *division, range of) {
  size_t at[x->ranks + 1];
  char *first = data + (size_t)of.first * size;
  at[0] = 0;
  for (int r = 0; r < x->ranks; r++) {
    const range share = share_in(x, division, r, of);
    at[r + 1] = at[r] + (size_t)(share.last - share.first) * size;
  }
  const size_t own = at[x->rank + 1] - at[x->rank], all = at[x->ranks];
  char *part = mix_lane_scratch(&x->packed, own + 1), *parts = mix_lane_scratch(&x->received, all);
  if (!part || !parts) return MIX_LANE_NO_MEMORY;
  memcpy(part, first + at[x->rank], own);
  const int code = x->transport->gather(x->link, part, parts, at);
  if (!code) memcpy(first, parts, all);
  return code;
}

int mix_lane_collect(mix_lane *x, void *data, size_t size, const mix_division *division) {
  const int64_t count = division->rows * division->row_size, most = MIX_BUCKET_LARGEST / (int64_t)size;
  if (division->owner != MIX_BY_ROWS)
    return mix_lane_broadcast(x, data, (size_t)count * size, division->owner);
  int code = 0;
  for (int64_t first = 0; first < count && !code; first += most)
    code =
        collect_range(x, data, size, division, (range){first, count - first < most ? count : first + most});
  return code;
}
