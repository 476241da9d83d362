// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The part of the seam for MPI: a call that fails does nothing and returns a code, as it does where
// the error handler is MPI_ERRORS_RETURN, which all communicators of the product have.
#include <mpi.h>

#include "tests/fault/interposed.hpp"

#define MPI_CALL(NAME, ...) \
  isoscale::fault::instead<NAME>(__func__, int{MPI_ERR_OTHER} __VA_OPT__(, ) __VA_ARGS__)
#define MPI_RELEASE(NAME, ...) \
  isoscale::fault::after<NAME>(__func__, int{MPI_ERR_OTHER} __VA_OPT__(, ) __VA_ARGS__)

extern "C" {

SEAMS(1, MPI_CALL, MPI_Barrier, MPI_Finalized, MPI_Query_thread)
SEAMS(2, MPI_CALL, MPI_Comm_dup, MPI_Comm_group, MPI_Comm_rank, MPI_Comm_set_errhandler,
      MPI_Comm_size, MPI_Get_library_version, MPI_Ibarrier)
SEAMS(3, MPI_CALL, MPI_Error_string, MPI_Get_count, MPI_Op_create, MPI_Test)
SEAMS(4, MPI_CALL, MPI_Comm_split, MPI_Init_thread, MPI_Testall)
SEAMS(5, MPI_CALL, MPI_Bcast, MPI_Comm_split_type, MPI_Group_translate_ranks, MPI_Mrecv)
SEAMS(6, MPI_CALL, MPI_Allreduce, MPI_Ibcast, MPI_Improbe, MPI_Reduce_scatter_block, MPI_Send,
      MPI_Ssend)
SEAMS(7, MPI_CALL, MPI_Allgather, MPI_Alltoall, MPI_Iallreduce, MPI_Irecv,
      MPI_Ireduce_scatter_block, MPI_Isend, MPI_Recv, MPI_Reduce)
SEAMS(8, MPI_CALL, MPI_Gather, MPI_Iallgather, MPI_Ialltoall, MPI_Ireduce, MPI_Scatter)
SEAMS(9, MPI_CALL, MPI_Igather, MPI_Iscatter)
SEAMS(0, MPI_RELEASE, MPI_Finalize)
SEAMS(1, MPI_RELEASE, MPI_Comm_free, MPI_Group_free, MPI_Op_free)

}  // extern "C"
