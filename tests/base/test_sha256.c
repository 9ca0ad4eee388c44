/* SHA-256: the examples of FIPS 180-4 and of NIST's example values, messages of every length around a block
 * in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sha256.h"
#include "base/sha256_inside.h"
#include <string.h>

static void expect_digest(const void *data, size_t size, const char *expected) {
  unsigned char digest[MIX_SHA256_BYTES];
  char text[MIX_SHA256_DIGITS + 1];
  mix_sha256_of(data, size, digest);
  mix_sha256_text(digest, text);
  assert_string_equal(text, expected);
}

static void examples_of_the_standard(void **state) {
  (void)state;
  static const struct {
    const char *message, *digest;
  } examples[] = {{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                  {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
                  {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
                   "lmnopqrsmnopqrstnopqrstu",
                   "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
                  {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    expect_digest(examples[i].message, strlen(examples[i].message), examples[i].digest);
}

static void a_million_times_a(void **state) {
  (void)state;
  static char message[1000000];
  memset(message, 'a', sizeof message);
  expect_digest(message, sizeof message, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The padding takes one block or two; pieces end inside of blocks and at their ends. */
static void pieces_give_the_digest_of_the_whole(void **state) {
  (void)state;
  unsigned char message[200], whole[MIX_SHA256_BYTES], digest[MIX_SHA256_BYTES];
  for (size_t i = 0; i < sizeof message; i++) message[i] = (unsigned char)(i * 37 + 11);
  for (size_t size = 0; size <= sizeof message; size++) {
    mix_sha256_of(message, size, whole);
    for (size_t piece = 1; piece <= 70; piece++) {
      mix_sha256 hash;
      mix_sha256_begin(&hash);
      for (size_t at = 0; at < size; at += piece)
        mix_sha256_add(&hash, message + at, size - at < piece ? size - at : piece);
      mix_sha256_end(&hash, digest);
      assert_memory_equal(digest, whole, sizeof whole);
    }
  }
}

/* Lengths at which the padding begins another block: digests by Python's hashlib of 0, 1, 2, ... */
static void lengths_around_a_block(void **state) {
  (void)state;
  static const struct {
    size_t size;
    const char *digest;
  } cases[] = {{1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
               {55, "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59"},
               {56, "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562"},
               {57, "2fe741af801cc238602ac0ec6a7b0c3a8a87c7fc7d7f02a3fe03d1c12eac4d8f"},
               {63, "29af2686fd53374a36b0846694cc342177e428d1647515f078784d69cdb9e488"},
               {64, "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108"},
               {65, "4bfd2c8b6f1eec7a2afeb48b934ee4b2694182027e6d0fc075074f2fabb31781"},
               {119, "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6"},
               {120, "f52b23db1fbb6ded89ef42a23ce0c8922c45f25c50b568a93bf1c075420bbb7c"},
               {128, "471fb943aa23c511f6f72f8d1652d9c880cfa392ad80503120547703e56a2be5"}};
  unsigned char message[256];
  for (size_t i = 0; i < sizeof message; i++) message[i] = (unsigned char)i;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_digest(message, cases[i].size, cases[i].digest);
}

/* The examples may run by the processor's instructions alone, and elsewhere not at all. */
static void portable_blocks_are_those_of_the_processor(void **state) {
  (void)state;
  enum { BLOCKS = 200 };
  static unsigned char blocks[BLOCKS * MIX_SHA256_BLOCK];
  uint32_t random = 1, ours[8], portable[8];
  for (size_t i = 0; i < sizeof blocks; i++)
    blocks[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
  for (size_t count = 0; count <= BLOCKS; count++) {
    for (int i = 0; i < 8; i++) ours[i] = portable[i] = random = random * 1664525 + 1013904223;
    mix_sha256_add_blocks(ours, blocks, count);
    mix_sha256_add_blocks_portable(portable, blocks, count);
    assert_memory_equal(ours, portable, sizeof ours);
  }
}

/* "abc" by portable C alone, whatever the processor has. */
static void portable_blocks_give_the_example(void **state) {
  (void)state;
  mix_sha256 hash;
  unsigned char block[MIX_SHA256_BLOCK] = {'a', 'b', 'c', 0x80, [63] = 24};
  static const uint32_t expected[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                       0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
  mix_sha256_begin(&hash);
  mix_sha256_add_blocks_portable(hash.state, block, 1);
  assert_memory_equal(hash.state, expected, sizeof expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(examples_of_the_standard),
                                     cmocka_unit_test(a_million_times_a),
                                     cmocka_unit_test(pieces_give_the_digest_of_the_whole),
                                     cmocka_unit_test(lengths_around_a_block),
                                     cmocka_unit_test(portable_blocks_are_those_of_the_processor),
                                     cmocka_unit_test(portable_blocks_give_the_example)};
  return cmocka_run_group_tests_name("SHA-256", tests, NULL, NULL);
}
