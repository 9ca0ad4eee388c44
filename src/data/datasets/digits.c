/* The built-in digits: strokes of the stroke font under affine and elastic distortion, drawn with an
 * anti-aliased round pen, with noise. After Simard, Steinkraus, Platt: Best practices for convolutional
 * neural networks applied to visual document analysis, ICDAR 2003. Only +, -, *, / and square roots are used,
 * which IEEE 754 rounds correctly, so every machine draws the same bytes. */
#include "data/datasets/digits.h"

#include "base/error.h"
#include "base/philox.h"
#include "data/datasets/stroke_font.h"
#include "data/datasets/images.h"
#include "graph/unfilled_tensor.h"
#include <math.h>
#include <string.h>

#define SIDE MIX_DIGIT_SIDE
#define SEGMENTS 5 /* straight segments between two points of a stroke */
#define WAVES 3    /* waves of the elastic distortion in each direction */
#define LABEL_STREAM UINT64_MAX

/* Gives this data set a key different from that of other users of the same seed. */
#define KEY_OF(seed) ((seed) ^ UINT64_C(0x6469676974730000))

/* The random numbers of one image: Philox words of (key, index). */
typedef struct stream {
  uint64_t key, index, block;
  mix_philox words;
  int used;
} stream;

static uint32_t next_word(stream *s) {
  if (s->used == 4) {
    s->words = mix_philox_block(s->key, s->index, s->block++);
    s->used = 0;
  }
  return s->words.v[s->used++];
}

/* Uniform in [low, high), with 24 random bits. */
static float uniform(stream *s, float low, float high) {
  return low + (high - low) * ((float)(next_word(s) >> 8) * 0x1p-24f);
}

/* Nearly normal: the sum of four uniform numbers. Mean 0, standard deviation `deviation`, at most 3.5
 * deviations from the mean. */
static float bell(stream *s, float deviation) {
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += uniform(s, -1, 1);
  return sum * deviation * 0.8660254f; /* the variance of the sum is 4/3 */
}

/* Rounds down without a library call, on every instruction set. */
static int floor_of(float x) {
  int whole = (int)x;
  return (float)whole > x ? whole - 1 : whole;
}

/* Approximates a sine of period 1 by parabolas (Bhaskara), in -1 to 1. */
static float wave(float phase) {
  phase -= (float)floor_of(phase);
  float half = phase < 0.5f ? phase : phase - 0.5f, arch = 16.0f * half * (0.5f - half);
  return phase < 0.5f ? arch : -arch;
}

/* The distortion of the strokes: an affine map, then a displacement by slow waves. */
typedef struct distortion {
  float xx, xy, yx, yy, x, y;
  struct {
    float x_cycles, y_cycles, phase, amplitude;
  } waves[2][WAVES];
} distortion;

static distortion draw_distortion(stream *s) {
  distortion d;
  float turn = bell(s, 0.09f), slant = bell(s, 0.14f);                       /* tangents of the angles */
  float width = uniform(s, 12.5f, 18.0f), height = uniform(s, 17.5f, 21.0f); /* pixels */
  float cosine = 1.0f / sqrtf(1.0f + turn * turn), sine = turn * cosine;
  /* x' = rotate(shear(scale(x))) about the centre of the box */
  d.xx = cosine * width;
  d.xy = (-cosine * slant - sine) * height;
  d.yx = sine * width;
  d.yy = (-sine * slant + cosine) * height;
  d.x = SIDE / 2.0f + bell(s, 0.6f);
  d.y = SIDE / 2.0f + bell(s, 0.6f);
  for (int axis = 0; axis < 2; axis++)
    for (int i = 0; i < WAVES; i++) {
      /* cycles per pixel: periods of 14 pixels or more */
      d.waves[axis][i].x_cycles = uniform(s, -0.07f, 0.07f);
      d.waves[axis][i].y_cycles = uniform(s, -0.07f, 0.07f);
      d.waves[axis][i].phase = uniform(s, 0, 1);
      d.waves[axis][i].amplitude = bell(s, 0.62f);
    }
  return d;
}

static void distort(const distortion *d, float x, float y, float to[2]) {
  x -= 0.5f;
  y -= 0.5f;
  float mapped[2] = {d->xx * x + d->xy * y + d->x, d->yx * x + d->yy * y + d->y};
  for (int axis = 0; axis < 2; axis++) {
    to[axis] = mapped[axis];
    for (int i = 0; i < WAVES; i++)
      to[axis] += d->waves[axis][i].amplitude *
                  wave(d->waves[axis][i].x_cycles * mapped[0] + d->waves[axis][i].y_cycles * mapped[1] +
                       d->waves[axis][i].phase);
  }
}

/* Draws one segment. The ink is 1 within the radius and falls to 0 within one pixel. Each pixel keeps its
 * maximum over all segments. */
static void draw_segment(float ink[SIDE][SIDE], const float from[2], const float to[2], float radius) {
  float reach = radius + 0.5f, dx = to[0] - from[0], dy = to[1] - from[1], length = dx * dx + dy * dy;
  int left = floor_of((from[0] < to[0] ? from[0] : to[0]) - reach),
      right = floor_of((from[0] > to[0] ? from[0] : to[0]) + reach) + 1;
  int top = floor_of((from[1] < to[1] ? from[1] : to[1]) - reach),
      bottom = floor_of((from[1] > to[1] ? from[1] : to[1]) + reach) + 1;
  if (left < 0) left = 0;
  if (top < 0) top = 0;
  if (right > SIDE - 1) right = SIDE - 1;
  if (bottom > SIDE - 1) bottom = SIDE - 1;
  float scale = length > 0 ? 1.0f / length : 0.0f;
  for (int row = top; row <= bottom; row++)
    for (int column = left; column <= right; column++) {
      float x = (float)column - from[0], y = (float)row - from[1];
      float along = (x * dx + y * dy) * scale;
      along = along < 0 ? 0 : along > 1 ? 1 : along;
      x -= along * dx;
      y -= along * dy;
      float square = x * x + y * y;
      if (square >= reach * reach) continue;
      float amount = reach - sqrtf(square);
      if (amount > 1) amount = 1;
      if (amount > ink[row][column]) ink[row][column] = amount;
    }
}

/* The Catmull-Rom curve between points 1 and 2 at t in [0, 1]. */
static float between(float p0, float p1, float p2, float p3, float t) {
  return p1 + 0.5f * t * (p2 - p0 + t * (2 * p0 - 5 * p1 + 4 * p2 - p3 + t * (3 * (p1 - p2) + p3 - p0)));
}

static void draw_stroke(float ink[SIDE][SIDE], const mix_stroke *stroke, const float shift[][2],
                        const distortion *d, float radius) {
  float points[MIX_GLYPH_POINTS][2] = {{0}}, from[2], to[2];
  for (int i = 0; i < stroke->count; i++)
    for (int axis = 0; axis < 2; axis++)
      points[i][axis] = (float)stroke->points[i][axis] * 0.01f + shift[i][axis];
  distort(d, points[0][0], points[0][1], from);
  for (int i = 0; i + 1 < stroke->count; i++) {
    const float *p1 = points[i], *p2 = points[i + 1];
    bool corner =
        stroke->points[i][0] == stroke->points[i + 1][0] && stroke->points[i][1] == stroke->points[i + 1][1];
    if (corner) continue;
    const float *p0 = points[i > 0 ? i - 1 : 0], *p3 = points[i + 2 < stroke->count ? i + 2 : i + 1];
    for (int segment = 1; segment <= SEGMENTS; segment++) {
      float t = (float)segment / SEGMENTS;
      distort(d, between(p0[0], p1[0], p2[0], p3[0], t), between(p0[1], p1[1], p2[1], p3[1], t), to);
      draw_segment(ink, from, to, radius);
      memcpy(from, to, sizeof from);
    }
  }
}

/* Each group of ten images shows every digit once, in a random order. */
static uint8_t label_of(uint64_t key, uint64_t index) {
  uint8_t order[10];
  uint64_t position = (index / 10) << 8; /* leaves positions for the rejected draws of nine bounded numbers */
  for (uint8_t i = 0; i < 10; i++) order[i] = i;
  for (uint64_t i = 9; i > 0; i--) {
    uint64_t other = mix_philox_below(key, LABEL_STREAM, &position, i + 1);
    uint8_t swapped = order[i];
    order[i] = order[other];
    order[other] = swapped;
  }
  return order[index % 10];
}

uint8_t mix_digit_draw(uint64_t seed, uint64_t index, uint8_t pixels[MIX_DIGIT_PIXELS]) {
  stream s = {.key = KEY_OF(seed), .index = index, .used = 4};
  uint8_t digit = label_of(s.key, index);
  const mix_stroke_glyph *glyph = &mix_stroke_font[digit][next_word(&s) % MIX_GLYPH_VARIANTS];
  distortion d = draw_distortion(&s);
  float radius = uniform(&s, 0.75f, 1.65f), darkness = uniform(&s, 190, 255), noise = uniform(&s, 0, 1);
  noise *= noise * 26.0f; /* mostly faint */
  float ink[SIDE][SIDE] = {{0}};
  for (int i = 0; i < glyph->stroke_count; i++) {
    const mix_stroke *stroke = &glyph->strokes[i];
    float shift[MIX_GLYPH_POINTS][2]; /* random displacement of each point */
    for (int j = 0; j < stroke->count; j++) {
      bool corner = j > 0 && memcmp(stroke->points[j], stroke->points[j - 1], 2) == 0;
      for (int axis = 0; axis < 2; axis++) shift[j][axis] = corner ? shift[j - 1][axis] : bell(&s, 0.02f);
    }
    draw_stroke(ink, stroke, shift, &d, radius);
  }
  uint32_t word = 0;
  for (int i = 0; i < MIX_DIGIT_PIXELS; i++) {
    if (i % 4 == 0) word = next_word(&s);
    float speckle = ((float)(word >> (i % 4 * 8) & 255) - 127.5f) * (1.0f / 127.5f);
    float value = ink[i / SIDE][i % SIDE] * darkness + noise * speckle;
    pixels[i] = value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5f);
  }
  return digit;
}

static bool draw_set(uint64_t seed, uint64_t start, int64_t count, mix_tensor **images, mix_tensor **labels) {
  void *pixels, *digits;
  *images = mix_tensor_unfilled(MIX_UINT8, (mix_shape){.rank = 3, .dims = {count, SIDE, SIDE}}, &pixels);
  *labels = *images ? mix_tensor_unfilled(MIX_UINT8, (mix_shape){.rank = 1, .dims = {count}}, &digits) : NULL;
  if (!*labels) return false;
  for (int64_t i = 0; i < count; i++)
    ((uint8_t *)digits)[i] =
        mix_digit_draw(seed, start + (uint64_t)i, (uint8_t *)pixels + i * MIX_DIGIT_PIXELS);
  return true;
}

mix_digits mix_digits_load_with(const mix_digits_options *given) {
  mix_digits images = {0};
  mix_digits_options options;
  if (!mix_options_copy(&options, sizeof options, given, "digits_load")) return images;
  int64_t train = options.train ? options.train : 12000, test = options.test ? options.test : 2000;
  const int64_t max = INT64_C(1) << 32;
  if (train < 1 || test < 1 || train > max || test > max) {
    mix_fail_value("digits_load: %lld images for training and %lld for test; expected 1 to %lld of each",
                   (long long)train, (long long)test, (long long)max);
    return images;
  }
  mix_scope *scope = mix_scope_begin();
  if (!scope) return images;
  mix_tensor *arrays[4] = {NULL};
  images.source = mix_images_source("built-in digits (seed %llu, %lld + %lld images)",
                                    (unsigned long long)options.seed, (long long)train, (long long)test);
  if (images.source && draw_set(options.seed, 0, train, &arrays[0], &arrays[1]) &&
      draw_set(options.seed, MIX_DIGIT_TEST_START, test, &arrays[2], &arrays[3]))
    mix_images_finish(&images, arrays, options.bytes);
  mix_images_leave(&images);
  mix_scope_end(scope);
  return images;
}
