/* What kernels keep of variables between runs, such as panels of weights. Plans that pack a variable alike
 * share it. One run makes it, while no run reads it. */
#pragma once

#include "backend/host/kernel.h"

typedef struct mix_panels mix_panels;

/* Equal keys are panels of equal bytes. */
typedef struct mix_panels_key {
  const void *variable; /* NULL: shared with nothing */
  size_t offset;        /* of the operand in it */
  const mix_kernel *kernel;
  bool flush_subnormals;
  int64_t layout[MIX_KEPT_LAYOUT];
} mix_panels_key;

typedef enum mix_panels_claim {
  MIX_PANELS_HELD,
  MIX_PANELS_CLAIMED, /* and the caller makes them */
  MIX_PANELS_BUSY,    /* others read what they were made of before, or make them now */
} mix_panels_claim;

/* counted: of the bytes that all plans may keep. NULL without an error: they are left out. */
mix_panels *mix_panels_share(const mix_panels_key *key, size_t bytes, bool counted);
void mix_panels_release(mix_panels *panels);
void *mix_panels_memory(const mix_panels *panels);
/* Takes no lock. True: they are of this stamp (mix_bindings), and stay so until let go. */
bool mix_panels_hold(mix_panels *panels, uint64_t stamp);
/* The same for those that were not: the first of `run` to ask makes them, the others hold them too. */
mix_panels_claim mix_panels_claim_for(mix_panels *panels, uint64_t stamp, const void *run);
/* What was claimed is made, unless `good` is false. */
void mix_panels_finish(mix_panels *panels, uint64_t stamp, bool good);
void mix_panels_let_go(mix_panels *panels);
