/* TensorBoard's event files: records in TFRecord framing with masked CRC-32C. Each record is an Event message
 * (TensorFlow's event.proto and summary.proto) that holds one value under a tag. */
#pragma once

#include "formats/protobuf.h"

typedef struct mix_event_file mix_event_file;

enum { MIX_EVENT_FILE_NAME = 384 };
/* A unique name, "events.out.tfevents.TIME.HOST.PID.N.v2". */
void mix_event_file_name(char name[MIX_EVENT_FILE_NAME]);
/* Creates the folder and in it the file, with the version record that readers expect first. NULL with the
 * error recorded. */
mix_event_file *mix_event_file_open(const char *folder, const char *name);
/* Continues a file after its first `length` bytes, and cuts what follows; without any it removes the file.
 * NULL, unless the error is recorded: there is no file of that length. */
mix_event_file *mix_event_file_reopen(const char *folder, const char *name, int64_t length);
/* Flushes. The length of the file; -1 with the error recorded. */
int64_t mix_event_file_length(mix_event_file *file);
/* Each writes one event; false with the error recorded. */
bool mix_event_file_scalar(mix_event_file *file, const char *tag, int64_t step, double value);
/* Rows (left edge, right edge, count). */
bool mix_event_file_histogram(mix_event_file *file, const char *tag, int64_t step, double (*buckets)[3],
                              int count);
/* A text for one of TensorBoard's plugins, with the plugin's metadata in `content`. */
bool mix_event_file_text(mix_event_file *file, const char *tag, int64_t step, const char *plugin,
                         const char *content, const char *text);
/* Flushes buffered events to the system, so that readers see them. */
bool mix_event_file_flush(mix_event_file *file);
/* Flushes, closes and frees. NULL: nothing to do. */
bool mix_event_file_close(mix_event_file *file);

/* ---- building blocks ---- */

/* CRC-32C (Castagnoli), masked by rotation and addition as TFRecord specifies. */
uint32_t mix_masked_crc32c(const void *data, size_t size);
/* Summary.Value: a scalar, a histogram. */
void mix_summary_scalar(mix_message *value, const char *tag, float scalar);
void mix_summary_histogram(mix_message *value, const char *tag, double (*buckets)[3], int count);
/* Makes an Event with a summary of `value`, which is freed. */
void mix_event_of(mix_message *event, double wall_time, int64_t step, mix_message *value);
