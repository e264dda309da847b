//===- nd.h - Driving a compiled rank program -------------------*- C -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The C ABI of a rank: open it, look at its tensors, run steps, save. An executable's main is a thin user of it, and a
// training loop in another language can drive the same program. Functions that can fail return 0 on success; nd_error
// says what went wrong.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_ND_H
#define ND_RUNTIME_CORE_ND_H

#include "nd/Runtime/Core/ABI.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rank, ranks;
  int32_t threads;          /* at least 1 */
  int32_t shared_memory_fd; /* of the job's control page and transport; -1: none, for one rank */
  int64_t total_steps;      /* of the run: the schedule's horizon where the program does not give one */
  const int32_t *cores;     /* the core that each thread is bound to; null: threads run anywhere */
} nd_options;

/// A tensor of the program in this rank's memory.
typedef struct {
  const nd_tensor_desc *desc;
  void *data;
  int64_t bytes;
} nd_tensor_view;

/// Where a tensor's bytes lie in a file: the whole logical tensor, row-major, from `offset` on. With `part_size` the
/// file holds a larger tensor, of `part_size` elements in `part_dim`, and this one is those from `part_offset` on.
typedef struct {
  int32_t tensor; /* index into nd_program.tensors */
  int32_t dtype;  /* in the file; converted */
  int64_t offset;
  int32_t part_dim;
  int64_t part_offset, part_size;
  const char *path;
} nd_file_slice;

/// The metrics of a step; `step` counts from 1.
typedef struct {
  int64_t step;
  double loss, grad_norm, lr, tokens;
  int32_t applied; /* whether the update was applied */
  double milliseconds;
} nd_step_result;

/// Bytes that this rank sent in the last step by collectives of one group, kind and class.
typedef struct {
  const char *group;
  int32_t kind, is_scalar;
  int32_t collective; /* id of the first of them */
  int64_t bytes, bytes_between_nodes;
} nd_sent;

/// Opens a rank: the arena is mapped and touched, threads and library state are made. Null on error, which is written
/// to `error`.
nd_rank *nd_open(const nd_program *program, const nd_options *options, char *error, size_t error_size);
/// The tensor of that kind and name.
int nd_tensor(nd_rank *rank, const char *kind, const char *name, nd_tensor_view *view);
/// Reads this rank's slices of tensors.
int nd_load(nd_rank *rank, const nd_file_slice *slices, int64_t count);
/// Runs one step on the inputs that are in place. The scalars are those of the schedule, unless `keep_scalars`.
int nd_step(nd_rank *rank, int keep_scalars, nd_step_result *result);
/// What this rank sent in the last step: returns the number of entries, of which at most `capacity` are written.
int64_t nd_sent_bytes(nd_rank *rank, nd_sent *entries, int64_t capacity);
/// Writes this rank's slices into files that exist and are large enough. Of equal replicas the first writes.
int nd_save(nd_rank *rank, const nd_file_slice *slices, int64_t count);
/// Compares this rank's slices with files, bit for bit.
int nd_verify(nd_rank *rank, const nd_file_slice *slices, int64_t count);
const char *nd_error(const nd_rank *rank);
void nd_close(nd_rank *rank);

#ifdef __cplusplus
}
#endif

#endif // ND_RUNTIME_CORE_ND_H
