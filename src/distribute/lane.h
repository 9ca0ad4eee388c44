/* What is sent over a link: sums of buckets, in parts, and the memory that it takes. */
#pragma once

#include "distribute/transport.h"
#include "graph/division.h"
#include <mixtape/dtype.h>

enum {
  MIX_BUCKET_FULL = 4 << 20,     /* bytes after which a bucket is exchanged */
  MIX_BUCKET_LARGEST = 16 << 20, /* bytes of one exchange: larger buckets go in parts */
  MIX_BUCKET_SEGMENTS = 128
};

typedef struct mix_segment {
  void *data;
  int64_t count;
  mix_division division; /* of sums of which each rank gets its share */
} mix_segment;

/* Memory of elements of one dtype. */
typedef struct mix_bucket {
  mix_dtype dtype;
  int segment_count;
  mix_segment segments[MIX_BUCKET_SEGMENTS];
  size_t bytes;
} mix_bucket;

typedef struct mix_scratch {
  void *data;
  size_t bytes;
} mix_scratch;

typedef struct mix_lane {
  const mix_transport *transport;
  mix_transport_link *link;
  int rank, ranks;
  mix_scratch packed, received, sums;
} mix_lane;

/* All return 0, a code of the transport, or this one. */
enum { MIX_LANE_NO_MEMORY = -1 };
/* Replaces the elements by their sums over the ranks, in place. */
int mix_lane_sum(mix_lane *lane, const mix_bucket *bucket);
/* `all` becomes the bytes of every rank. */
int mix_lane_gather(mix_lane *lane, const void *own, size_t bytes, void *all);
/* `data` becomes that of the root. */
int mix_lane_broadcast(mix_lane *lane, void *data, size_t bytes, int root);
/* divided.c: each rank's share of each segment becomes the sums; the other elements stay as they are. */
int mix_lane_scatter(mix_lane *lane, const mix_bucket *bucket);
/* Each rank's share of the elements, of `size` bytes, becomes that of all. */
int mix_lane_collect(mix_lane *lane, void *data, size_t size, const mix_division *division);
/* Memory of at least so many bytes, whose former contents are lost; NULL: there is none. */
void *mix_lane_scratch(mix_scratch *scratch, size_t bytes);
void mix_lane_release(mix_lane *lane);
